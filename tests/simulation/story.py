"""A story: what happens to a system, step by step, as a value that prints whole and that Hypothesis shrinks.

How to read this folder:

- A *story* (this file) is a seed, the settings of a system, and steps: a tick is due, a call to come fails or is the
  last of its invocation, a reviewer decides, the operator sends something again. All chance that is not in a step
  (latencies, jitter, ids) comes from the seed, so the same story always goes the same way.
- A *world* (world.py) is a story's own clock and all that is at work in it. In it stand models of what Galley runs on
  (lambdas.py, sqs.py, stores.py, model_api.py) and the people who use it (people.py). What they call is the real code.
- telling.py puts the two together: it lets each step happen, then puts nothing more in the way until all is quiet.
  checks.py keeps its own account, and says after every write, every step and at the end what does not hold.
- A story that fails prints its journal and itself. To tell that one again, on both stores:
  ``STORY='Story(seed=7, ...)' .venv/bin/python -m pytest tests/simulation``. After ``make simulate`` conftest.py prints
  how often what happened.
"""

from dataclasses import dataclass
from enum import StrEnum

from hypothesis import strategies as st


class _Named(StrEnum):
    def __repr__(self) -> str:
        return str.__str__(f"{type(self).__name__}.{self.name}")


class Function(_Named):
    """Whose call is meant."""

    ANY = "any"
    DISPATCH = "dispatch"
    DRAFT = "draft"
    RECOVER = "recover"
    REVIEW = "review"
    PUBLISH = "publish"
    OPERATOR = "operator"


class Side(_Named):
    """Whether a call's effect happened before its caller died."""

    BEFORE = "before"
    AFTER = "after"


class Service(_Named):
    """What a call goes to."""

    STORE = "store"
    QUEUE = "queue"
    BUCKET = "bucket"
    SCHEDULES = "schedules"
    MODEL = "model"


class Kind(_Named):
    """How a call goes wrong: it is turned away, or it is done and its answer never comes."""

    REFUSED = "refused"
    LOST = "lost"


class Says(_Named):
    """What the model's API does with a call."""

    ANSWERS = "answers"
    RATE_LIMITED = "429"
    OVERLOADED = "529"
    BROKEN = "500"
    NEVER_ANSWERS = "times out, the work done"
    NO_CONNECTION = "no connection"
    HANGS_UP = "connection lost before the first byte, the work done"
    BREAKS_OFF = "connection lost within the answer"
    TRUNCATED = "max_tokens"
    REFUSES = "refusal"
    RAMBLES = "not the form that was asked for"
    BAD_REQUEST = "400"
    SPEND_LIMIT = "400, the spend limit is reached"


class Verdict(_Named):
    """What a reviewer decides."""

    APPROVE = "approve"
    EDIT = "edit"
    REJECT = "reject"
    OTHER_TEXT = "approve, with the hash of another text"
    OLD_VERSION = "reject, with the version of an old page"


@dataclass(frozen=True, slots=True)
class Tick:
    """A schedule is due, and Scheduler sends its tick: ``times`` times (0: never), so late.

    Schedule 0 names every drafter, schedule n the nth. So many items come to each of its drafters' sources before.
    """

    schedule: int = 0
    items: int = 1
    times: int = 1
    late_minutes: int = 0


@dataclass(frozen=True, slots=True)
class ByHand:
    """Somebody invokes dispatch for a drafter without a slot."""

    drafter: int = 0
    items: int = 1


@dataclass(frozen=True, slots=True)
class Backfill:
    """The operator asks for the slot so many hours ago."""

    drafter: int = 0
    hours: int = 5


@dataclass(frozen=True, slots=True)
class Garbage:
    """Something that is no run message comes into the queue."""

    drafter: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """Time passes."""

    minutes: int = 1


@dataclass(frozen=True, slots=True)
class Leap:
    """Everything stands still for so long, as soon as a draft is being made: a host that froze, and then goes on."""

    minutes: int = 10


@dataclass(frozen=True, slots=True)
class Review:
    """Reviewers decide on the nth waiting draft, once there is one, all having read it before the first decides.

    ``tampers``: between the two somebody changes its text by hand, in the table.
    """

    nth: int = 0
    verdicts: tuple[Verdict, ...] = (Verdict.APPROVE,)
    tampers: bool = False


@dataclass(frozen=True, slots=True)
class Resend:
    """The operator sends the nth of what is dead again, run or tick."""

    nth: int = 0


@dataclass(frozen=True, slots=True)
class ResendAll:
    """The operator sends all that is dead again."""


@dataclass(frozen=True, slots=True)
class Discard:
    """The operator discards the nth of what is dead."""

    nth: int = 0


@dataclass(frozen=True, slots=True)
class Pause:
    """A drafter is paused."""

    drafter: int = 0


@dataclass(frozen=True, slots=True)
class Resume:
    """Whoever is paused is resumed."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A drafter's daily budget becomes so many worst costs of a call."""

    drafter: int = 0
    calls: int = 1


@dataclass(frozen=True, slots=True)
class Unknown:
    """A drafter's file is broken until the next deployment (the same step again)."""

    drafter: int = 0


@dataclass(frozen=True, slots=True)
class Sweep:
    """Recover is invoked."""


@dataclass(frozen=True, slots=True)
class Crash:
    """From now on the nth call of a function is the last thing that its invocation does."""

    function: Function = Function.ANY
    call: int = 1
    side: Side = Side.BEFORE


@dataclass(frozen=True, slots=True)
class Trouble:
    """From now on, after ``skip`` calls to a service, so many calls go wrong."""

    service: Service = Service.STORE
    kind: Kind = Kind.REFUSED
    skip: int = 0
    calls: int = 1


@dataclass(frozen=True, slots=True)
class ModelSays:
    """What the model's API does with its next calls."""

    says: Says = Says.OVERLOADED
    times: int = 1
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class Slow:
    """The model's next call takes so many seconds, if it is given them."""

    seconds: int = 60


@dataclass(frozen=True, slots=True)
class Throttle:
    """Lambda turns so many invocations of draft away; what they were for is hidden for so long (None: by chance)."""

    times: int = 1
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Twice:
    """The poller hands so many of the next messages to two invocations at once."""

    times: int = 1


@dataclass(frozen=True, slots=True)
class Undeleted:
    """So many of the next messages that are done with are not deleted, and come back by their visibility."""

    times: int = 1


Step = (
    Tick
    | ByHand
    | Backfill
    | Garbage
    | Wait
    | Leap
    | Review
    | Resend
    | ResendAll
    | Discard
    | Pause
    | Resume
    | Budget
    | Unknown
    | Sweep
    | Crash
    | Trouble
    | ModelSays
    | Slow
    | Throttle
    | Twice
    | Undeleted
)


@dataclass(frozen=True, slots=True)
class Weather:
    """What goes wrong without a step that says so.

    Of a thousand calls so many kill their caller, and so many go wrong; of a hundred calls of the model so many fail;
    of a thousand deliveries so many are doubled, and so many are not deleted afterwards; of a thousand drafts that are
    read at the desk so many are changed by hand before they are decided. A story that was shrunk has none of it, where
    it can be without, since where it strikes changes with every step that is left out.
    """

    crashes: int = 0
    troubles: int = 0
    model: int = 0
    deliveries: int = 0
    hands: int = 0


@dataclass(frozen=True, slots=True)
class Ruled:
    """What becomes of a drafter's drafts: a newer one replaces the older, they expire, or nobody reviews them.

    ``names``: a draft is urgent, and names those whose place it takes, as a notice of recovery names its alert. A
    drafter that supersedes has a limit of two at least.
    """

    supersede: bool = False
    expire_hours: int | None = None
    unread: bool = False
    names: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """The system that a story happens to: for each drafter its limit of undecided drafts, its budget in calls, and the
    rules of its drafts.

    Every ``desk_minutes`` (0: never) a reviewer decides on one draft, whatever else happens.
    """

    limits: tuple[int, ...] = (1,)
    budgets: tuple[int | None, ...] = (None,)
    grace_minutes: int = 120
    workers: int = 2
    desk_minutes: int = 0
    weather: Weather = Weather()
    rules: tuple[Ruled, ...] = ()


@dataclass(frozen=True, slots=True)
class Story:
    """A seed, a system, and what happens to it."""

    seed: int
    settings: Settings
    steps: tuple[Step, ...]


MOST_DRAFTERS = 3

_drafter = st.integers(0, MOST_DRAFTERS - 1)
_tick = st.builds(
    Tick,
    schedule=st.integers(0, MOST_DRAFTERS),
    items=st.sampled_from((1, 2, 3, 0)),
    times=st.sampled_from((1, 1, 2, 3, 0)),
    late_minutes=st.sampled_from((0, 0, 0, 0, 1, 4, 40, 200)),
)
_review = st.builds(
    Review,
    nth=st.integers(0, 3),
    verdicts=st.lists(st.sampled_from(Verdict), min_size=1, max_size=3).map(tuple),
    tampers=st.sampled_from((False, False, True)),
)
_crash = st.builds(
    Crash,
    function=st.sampled_from((Function.DRAFT, Function.DRAFT, *Function)),
    call=st.integers(1, 12),
    side=st.sampled_from(Side),
)
_trouble = st.builds(
    Trouble,
    service=st.sampled_from((Service.STORE, Service.STORE, Service.QUEUE, Service.BUCKET, Service.SCHEDULES)),
    kind=st.sampled_from(Kind),
    skip=st.integers(0, 6),
    calls=st.sampled_from((1, 2, 4, 9, 30)),
)
_model_says = st.builds(
    ModelSays,
    says=st.sampled_from(Says),
    times=st.sampled_from((1, 2, 4, 8)),
    retry_after=st.sampled_from((None, 20, 400, 300_000)),
)
_rare = st.one_of(
    st.builds(Backfill, _drafter, st.integers(1, 8)),
    st.builds(Garbage, _drafter),
    st.builds(Unknown, _drafter),
    st.builds(Slow, st.sampled_from((20, 200, 320))),
    st.builds(Throttle, st.integers(1, 6)),
    st.builds(Undeleted, st.integers(1, 3)),
    st.builds(ResendAll),
)
_step = st.one_of(
    *[_tick] * 5,
    *[st.builds(ByHand, _drafter, st.sampled_from((1, 3, 0)))] * 3,
    *[st.builds(Wait, st.sampled_from((1, 0, 5, 16, 35, 130)))] * 2,
    *[_review] * 4,
    *[_crash] * 3,
    *[_trouble] * 2,
    *[_model_says] * 3,
    *[st.builds(Sweep)] * 2,
    *[st.builds(Resend, st.integers(0, 4))] * 2,
    st.builds(Discard, st.integers(0, 4)),
    *[st.builds(Resume)] * 2,
    st.builds(Leap, st.sampled_from((35, 6, 2, 150))),
    st.builds(Twice, st.integers(1, 3)),
    st.builds(Pause, _drafter),
    st.builds(Budget, _drafter, st.sampled_from((4, 2, 1, 0, 9))),
    _rare,
)
_settings = st.builds(
    Settings,
    limits=st.lists(st.integers(1, 3), min_size=1, max_size=MOST_DRAFTERS).map(tuple),
    budgets=st.lists(st.sampled_from((None, None, None, 1, 4, 9)), min_size=MOST_DRAFTERS, max_size=MOST_DRAFTERS).map(
        tuple
    ),
    grace_minutes=st.sampled_from((120, 30, 12, 400)),
    workers=st.integers(1, 3),
    desk_minutes=st.sampled_from((15, 40, 0)),
    weather=st.builds(
        Weather,
        crashes=st.sampled_from((0, 5, 15, 40)),
        troubles=st.sampled_from((0, 0, 5, 30)),
        model=st.sampled_from((0, 10, 40, 80)),
        deliveries=st.sampled_from((0, 20, 100)),
        hands=st.sampled_from((0, 200)),
    ),
    rules=st.lists(
        st.builds(
            Ruled,
            supersede=st.booleans(),
            expire_hours=st.sampled_from((None, None, 1, 2)),
            unread=st.sampled_from((False, False, False, True)),
            names=st.booleans(),
        ),
        min_size=MOST_DRAFTERS,
        max_size=MOST_DRAFTERS,
    ).map(tuple),
)
stories = st.builds(
    Story,
    seed=st.integers(0, 2**32 - 1),
    settings=_settings,
    steps=st.lists(_step, min_size=15, max_size=60).map(tuple),
)
"""Every story that may happen."""
