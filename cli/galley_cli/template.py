"""template.yaml, as one machine understands it: what is due when, what runs it, and within which limits.

What is deployed is what runs here: schedules, time limits, retries and queue settings are read from the template,
never repeated. What Galley needs and the template lacks is an error; only what AWS itself defaults is defaulted.
"""

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from galley.contract import SCHEDULE_PLACEHOLDER, SLOT_PLACEHOLDER, InvalidTick, read_tick
from galley.explain import explain
from galley.instants import format_instant, parse_instant
from galley.schedule import Calendar, InvalidSchedule
from galley.schedules import ScheduleDefinition, ScheduleMissing, ScheduleSummary

DISPATCH, DRAFT, RECOVER, REVIEW, PUBLISH = FUNCTIONS = ("dispatch", "draft", "recover", "review", "publish")

ARN_PREFIX = "arn:aws:scheduler:local:000000000000:schedule/galley/"
"""What a schedule's ARN begins with on one machine; its name follows."""


class InvalidTemplate(ValueError):
    """A template that the system cannot run from. Its text is one line that names file, resource, field and value."""


@dataclass(frozen=True, slots=True)
class TemplateSchedule:
    """One ``ScheduleV2`` event: when it is due, and what its function is then sent.

    ``retry_age`` is how late Scheduler still delivers a tick.
    """

    name: str
    function: str
    expression: str
    timezone: str
    input: str
    enabled: bool
    start: datetime | None
    end: datetime | None
    retry_age: timedelta

    @property
    def arn(self) -> str:
        """What a tick names the schedule by."""
        return ARN_PREFIX + self.name

    def calendar(self, created: datetime) -> Calendar:
        """Return the slots; a rate without a StartDate counts from the schedule's creation."""
        return self.definition(created, created).calendar()

    def event(self, slot: datetime) -> str:
        """Return the input as Scheduler sends it at a slot, its placeholders replaced."""
        return self.input.replace(SCHEDULE_PLACEHOLDER, self.arn).replace(SLOT_PLACEHOLDER, format_instant(slot))

    def definition(self, created: datetime, modified: datetime) -> ScheduleDefinition:
        """Return the schedule as Scheduler describes it, created and last changed at the given instants."""
        return ScheduleDefinition(
            name=self.name,
            arn=self.arn,
            expression=self.expression,
            timezone=self.timezone,
            input=self.input,
            enabled=self.enabled,
            created=created,
            modified=modified,
            start=self.start,
            end=self.end,
        )


@dataclass(frozen=True, slots=True)
class TemplateFunction:
    """One function, named by its handler's module. A variable without a literal value is None."""

    name: str
    handler: str
    time_limit: timedelta
    memory_mb: int
    environment: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class TemplateQueue:
    """The queue that feeds draft. A message that was received more than ``max_receives`` times is dead."""

    visibility: timedelta
    max_receives: int
    concurrency: int


@dataclass(frozen=True, slots=True)
class TemplateStream:
    """How the table's stream feeds publish: only the records that fit one of the patterns."""

    batch_size: int
    retries: int
    max_age: timedelta
    patterns: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class AsyncRetries:
    """How often, and for how long, Lambda repeats an asynchronous invocation that failed."""

    retries: int
    max_age: timedelta


@dataclass(frozen=True, slots=True)
class Template:
    """What of the template matters on one machine.

    ``schedules`` send ticks to dispatch and ``sweeps`` start recover. Broken ones are in neither: each is a line of
    ``problems``.
    """

    path: Path
    functions: Mapping[str, TemplateFunction]
    queue: TemplateQueue
    stream: TemplateStream
    async_retries: Mapping[str, AsyncRetries]
    schedules: tuple[TemplateSchedule, ...]
    sweeps: tuple[TemplateSchedule, ...]
    problems: tuple[str, ...]


class TemplateSchedules:
    """The group of schedules on one machine: what template.yaml says, created and changed when the caller says."""

    def __init__(self, definitions: Iterable[ScheduleDefinition]) -> None:
        """Keep the definitions."""
        self._definitions = {definition.arn: definition for definition in definitions}

    @classmethod
    def of(cls, template: Template, *, created: datetime, modified: datetime) -> Self:
        """Return the template's good schedules, all created and last changed at the given instants."""
        return cls(schedule.definition(created, modified) for schedule in template.schedules)

    def all(self) -> tuple[ScheduleDefinition, ...]:
        """Return every schedule, by name."""
        return tuple(sorted(self._definitions.values(), key=lambda definition: definition.name))

    def listed(self) -> tuple[ScheduleSummary, ...]:
        """Return every schedule as a listing shows it, by name."""
        return tuple(definition.summary for definition in self.all())

    def get(self, arn: str) -> ScheduleDefinition:
        """Return one schedule.

        Raises:
            ScheduleMissing: when there is none by that ARN.
        """
        try:
            return self._definitions[arn]
        except KeyError as error:
            raise ScheduleMissing(f"schedule {arn!r} is not in template.yaml") from error


def read_template(path: Path) -> Template:
    """Return what the local system needs of a template; a broken schedule is among its problems, and the rest is good.

    Raises:
        InvalidTemplate: when the file cannot be read, or a function, the queue or the stream is missing or wrong.
    """
    return _Reader(path, _load(path)).template()


# The parts of the template that are read, as CloudFormation and SAM name them


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


def _an_instant(text: str) -> str:
    parse_instant(text)
    return text


_Instant = Annotated[str, AfterValidator(_an_instant)]
_Seconds = Annotated[int, Field(ge=0)]
_PartT = TypeVar("_PartT", bound=_Part)


class _SchedulerRetries(_Part):
    # https://docs.aws.amazon.com/scheduler/latest/APIReference/API_RetryPolicy.html
    MaximumEventAgeInSeconds: _Seconds = 86400


class _ScheduleEvent(_Part):
    ScheduleExpression: str
    ScheduleExpressionTimezone: str
    Input: str
    State: Literal["ENABLED", "DISABLED"] = "ENABLED"
    StartDate: _Instant | None = None
    EndDate: _Instant | None = None
    # One machine needs none of these but the age. Deployed, a schedule without them is named by chance, is not among
    # those that the sweep reads, has no right to invoke, or loses the ticks that it cannot deliver.
    OmitName: Literal[True]
    GroupName: Any
    RoleArn: Any
    RetryPolicy: _SchedulerRetries
    DeadLetterConfig: dict[str, Any]


class _Scaling(_Part):
    MaximumConcurrency: int = Field(ge=2, le=1000)


class _QueueEvent(_Part):
    Queue: dict[str, Any]
    BatchSize: Literal[1]
    FunctionResponseTypes: tuple[Literal["ReportBatchItemFailures"]]
    ScalingConfig: _Scaling


class _Filter(_Part):
    Pattern: str


class _FilterCriteria(_Part):
    Filters: Annotated[tuple[_Filter, ...], Field(min_length=1)]


class _StreamEvent(_Part):
    BatchSize: int = Field(ge=1, le=10_000)
    FunctionResponseTypes: tuple[Literal["ReportBatchItemFailures"]]
    MaximumRetryAttempts: int = Field(ge=0)
    MaximumRecordAgeInSeconds: _Seconds
    FilterCriteria: _FilterCriteria


class _Invocations(_Part):
    # https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-configuring.html
    MaximumRetryAttempts: int = Field(default=2, ge=0, le=2)
    MaximumEventAgeInSeconds: _Seconds = 21600


class _Environment(_Part):
    Variables: dict[str, Any] = {}


class _Function(_Part):
    Handler: Annotated[str, Field(pattern=r"^\w+\.\w+$")]
    Timeout: Annotated[int, Field(ge=1, le=900)]
    MemorySize: Annotated[int, Field(ge=128)]
    Environment: _Environment = _Environment()
    EventInvokeConfig: _Invocations = _Invocations()
    Events: dict[str, dict[str, Any]] = {}


class _Redrive(_Part):
    maxReceiveCount: int = Field(ge=1)


class _Queue(_Part):
    FifoQueue: Literal[True]
    VisibilityTimeout: _Seconds
    RedrivePolicy: _Redrive


class _Reader:
    """Turns the loaded document into a Template, and names the place of what is wrong in it."""

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        self._path = path
        self._resources = _mapping(document.get("Resources"))
        self._globals = _mapping(_mapping(document.get("Globals")).get("Function"))
        self._problems: list[str] = []

    def template(self) -> Template:
        functions = self._functions()
        missing = [name for name in FUNCTIONS if name not in functions]
        if missing:
            raise InvalidTemplate(
                f"{self._path}: no AWS::Serverless::Function has the handler {missing[0]}.handler; add it"
            )
        return Template(
            path=self._path,
            functions={name: _as_function(name, part) for name, (_, part) in functions.items()},
            queue=self._queue(*functions[DRAFT]),
            stream=self._stream(*functions[PUBLISH]),
            async_retries={
                name: AsyncRetries(
                    part.EventInvokeConfig.MaximumRetryAttempts,
                    timedelta(seconds=part.EventInvokeConfig.MaximumEventAgeInSeconds),
                )
                for name, (_, part) in functions.items()
            },
            schedules=tuple(self._schedules(DISPATCH, *functions[DISPATCH])),
            sweeps=tuple(self._schedules(RECOVER, *functions[RECOVER])),
            problems=tuple(self._problems),
        )

    def _functions(self) -> dict[str, tuple[str, _Function]]:
        """Return the functions with their logical ids, by the module of their handler."""
        functions: dict[str, tuple[str, _Function]] = {}
        for logical_id, resource in self._resources.items():
            if _mapping(resource).get("Type") == "AWS::Serverless::Function":
                own = _mapping(resource.get("Properties"))
                variables = {**_variables(self._globals), **_variables(own)}
                merged = {**self._globals, **own, "Environment": {"Variables": variables}}
                part = self._part(_Function, merged, logical_id)
                functions[part.Handler.partition(".")[0]] = (logical_id, part)
        return functions

    def _queue(self, logical_id: str, function: _Function) -> TemplateQueue:
        name, properties = self._only_event(logical_id, function, "SQS")
        event = self._part(_QueueEvent, properties, f"{logical_id}.Events.{name}")
        queue_id = str(event.Queue.get("Fn::GetAtt", [""])[0])
        resource = _mapping(self._resources.get(queue_id))
        if resource.get("Type") != "AWS::SQS::Queue":
            raise InvalidTemplate(
                f"{self._path}: {logical_id}.Events.{name}: field 'Queue' is {event.Queue!r}: "
                "it must be !GetAtt of a queue in this template"
            )
        queue = self._part(_Queue, _mapping(resource.get("Properties")), queue_id)
        return TemplateQueue(
            visibility=timedelta(seconds=queue.VisibilityTimeout),
            max_receives=queue.RedrivePolicy.maxReceiveCount,
            concurrency=event.ScalingConfig.MaximumConcurrency,
        )

    def _stream(self, logical_id: str, function: _Function) -> TemplateStream:
        name, properties = self._only_event(logical_id, function, "DynamoDB")
        where = f"{logical_id}.Events.{name}"
        event = self._part(_StreamEvent, properties, where)
        patterns = []
        for one in event.FilterCriteria.Filters:
            try:
                patterns.append(dict(json.loads(one.Pattern)))
            except (ValueError, TypeError) as error:
                raise InvalidTemplate(
                    f"{self._path}: {where}: field 'Pattern' is {one.Pattern!r}: it must be a JSON object ({error})"
                ) from error
        return TemplateStream(
            batch_size=event.BatchSize,
            retries=event.MaximumRetryAttempts,
            max_age=timedelta(seconds=event.MaximumRecordAgeInSeconds),
            patterns=tuple(patterns),
        )

    def _only_event(self, logical_id: str, function: _Function, kind: str) -> tuple[str, Mapping[str, Any]]:
        events = [(name, event) for name, event in function.Events.items() if event.get("Type") == kind]
        if len(events) != 1:
            raise InvalidTemplate(
                f"{self._path}: {logical_id}.Events has {len(events)} events of type {kind}; it needs exactly one"
            )
        name, event = events[0]
        return name, _mapping(event.get("Properties"))

    def _schedules(self, function: str, logical_id: str, part: _Function) -> Iterator[TemplateSchedule]:
        for name, event in part.Events.items():
            if event.get("Type") == "ScheduleV2":
                try:
                    yield self._schedule(function, name, f"{logical_id}.Events.{name}", event)
                except InvalidTemplate as error:
                    self._problems.append(str(error))

    def _schedule(self, function: str, name: str, where: str, event: Mapping[str, Any]) -> TemplateSchedule:
        part = self._part(_ScheduleEvent, _mapping(event.get("Properties")), where)
        schedule = TemplateSchedule(
            name=name,
            function=function,
            expression=part.ScheduleExpression,
            timezone=part.ScheduleExpressionTimezone,
            input=part.Input,
            enabled=part.State == "ENABLED",
            start=None if part.StartDate is None else parse_instant(part.StartDate),
            end=None if part.EndDate is None else parse_instant(part.EndDate),
            retry_age=timedelta(seconds=part.RetryPolicy.MaximumEventAgeInSeconds),
        )
        try:
            schedule.calendar(parse_instant("2000-01-01T00:00:00Z"))
            if function == DISPATCH:
                read_tick(part.Input, "Input")
            else:
                json.loads(part.Input)
        except (InvalidSchedule, InvalidTick) as error:
            raise InvalidTemplate(f"{self._path}: {where}: {error}") from error
        except ValueError as error:
            raise InvalidTemplate(f"{self._path}: {where}: Input is {part.Input!r}: not JSON ({error})") from error
        return schedule

    def _part(self, model: type[_PartT], properties: Mapping[str, Any], where: str) -> _PartT:
        try:
            return model.model_validate(properties)
        except ValidationError as error:
            raise InvalidTemplate(f"{self._path}: {explain(error, where)}") from error


def _as_function(name: str, part: _Function) -> TemplateFunction:
    return TemplateFunction(
        name=name,
        handler=part.Handler,
        time_limit=timedelta(seconds=part.Timeout),
        memory_mb=part.MemorySize,
        environment={
            variable: None if isinstance(value, dict | list) else value if isinstance(value, str) else json.dumps(value)
            for variable, value in part.Environment.Variables.items()
        },
    )


def _variables(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(_mapping(properties.get("Environment")).get("Variables"))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# The file itself: YAML with CloudFormation's tags


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads ``!Ref x`` as ``{"Ref": "x"}`` and so on, leaves dates as text, and refuses a key that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping of a node."""
        seen: set[object] = set()
        for key_node, _ in node.value:
            if key_node.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"key {key_node.value!r} stands twice", problem_mark=key_node.start_mark
                )
            seen.add(key_node.value)
        made: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return made


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def _construct_tag(loader: Any, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
    value: Any
    match node:
        case yaml.ScalarNode():
            value = loader.construct_scalar(node)
        case yaml.SequenceNode():
            value = loader.construct_sequence(node, deep=True)
        case _:
            value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {name: value}


_Loader.add_multi_constructor("!", _construct_tag)


def _load(path: Path) -> Mapping[str, Any]:
    """Return the document, with each reference to a parameter replaced by the parameter's default."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a safe loader
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidTemplate(f"{path}: cannot be read ({error})") from error
    except yaml.YAMLError as error:
        raise InvalidTemplate(f"{path}: is not YAML ({' '.join(str(error).split())})") from error
    if not isinstance(document, dict):
        raise InvalidTemplate(f"{path}: is not a template; it needs Resources")
    defaults = {
        name: parameter["Default"]
        for name, parameter in _mapping(document.get("Parameters")).items()
        if "Default" in _mapping(parameter)
    }
    return _mapping(_with_defaults(document, defaults))


def _with_defaults(value: Any, defaults: Mapping[str, Any]) -> Any:
    match value:
        case {"Ref": str(name)} if len(value) == 1 and name in defaults:
            return defaults[name]
        case dict():
            return {key: _with_defaults(inner, defaults) for key, inner in value.items()}
        case list():
            return [_with_defaults(inner, defaults) for inner in value]
    return value
