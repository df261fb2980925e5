"""The mutants that no test can notice, each with the reason. A mutant that a test could notice does not belong here."""

EQUIVALENT: dict[str, str] = {
    "changes.py decide: without `or seen.drafted`": (
        "nothing changes a pending run but its decision, so `changed` is the instant at which it was drafted"
    ),
    "changes.py decide: without `or seen.changed`": (
        "each pending run has a `drafted`; the other operand is there for the type, which allows None"
    ),
    "store.py _UPDATE_RUN: without `version = ?`": (
        "the row is read in the same transaction, in which nobody else writes; the term only keeps `apply` honest"
    ),
    "store.py _UPDATE_RUN: without `owner IS ?`": (
        "the row is read in the same transaction, in which nobody else writes; the term only keeps `apply` honest"
    ),
    "store.py _Rows.apply: `change.places` always": "adding no place changes nothing; the guard saves two statements",
    "state.py _MIGRATIONS: without `UNIQUE` on messages (2)": (
        "two random receipts are never equal; the constraint is there for its index"
    ),
    "dynamodb.py DynamoStore.store: `(size := _item_bytes(text)) > MOST_ITEM_BYTES` becomes >=": (
        "what is as large as a row can be is DynamoDB's to judge, and its refusal is told in the same words; "
        "moto's own bound is a little lower"
    ),
    "dynamodb.py DynamoStore.decide: `(size := sum(len(text.encode()) for text in edit)) > MOST_ITEM_BYTES`"
    " becomes >=": (
        "an edit that fills a row alone does not fit beside the draft; DynamoDB's refusal is told in the same words"
    ),
    "dynamodb.py DynamoStore._gate: `pending < :limit` never holds (2)": (
        "this one stands where the limit is zero, and no count is below that"
    ),
    "dynamodb.py DynamoStore._reservation: `committed <= :room` never holds (2)": (
        "this one stands where the room is below zero, and nothing that is committed is"
    ),
    "dynamodb.py DynamoStore._reservation: `committed <= :room` becomes < (2)": (
        "this one stands where the room is below zero, and nothing that is committed is"
    ),
    "dynamodb.py DynamoStore._place_back: `change.places` always": (
        "adding no place changes nothing, and the count that must be at least zero is; the guard saves a write"
    ),
    'dynamodb.py DynamoStore._spend: without `or ""`': (
        "a run that commits something has the day on which it was claimed; the operand is there for the type"
    ),
    'dynamodb.py DynamoStore._spend_key: without `or ""`': (
        "a run that commits something has the day on which it was claimed; the operand is there for the type"
    ),
    "attempt.py dead_letter: `error is None` never": "every caller has an error; None is allowed by the type alone",
    "publishing.py _settle: `case NoSuchRun()` is not told apart": (
        "without the case the function ends, and that returns None too; the case is there so that all are named"
    ),
    "abandoned.py _end: `case LeaseLost()` is not told apart": (
        "without the case the function ends, which counts as no too; the case is there so that each is named"
    ),
    "catch_up.py catch_up: without `or slot`": (
        "there is no newest slot only where all were due in the last pause, and those do not come so far; "
        "the operand is there for the type"
    ),
    "drafting.py _is_overtaken: `case AlreadyThere()` is not told apart": (
        "without the case the function ends, which counts as no too; the case is there so that each is named"
    ),
    "drafting.py _wait_for: without `or attempt.began`": (
        "a run that cannot be claimed yet has a lease or a next attempt; the operand is there for the type"
    ),
    "store.py _Rows.move_cursors: `cursors` always": "without cursors there is nothing to read and nothing to move",
    "state.py _MIGRATIONS: without `FOREIGN KEY (drafter, slot) REFERENCES runs (drafter, slot)` on texts": (
        "a text is only written where its run was just seen, in the same transaction; the constraint is against hands"
    ),
    "state.py _MIGRATIONS: without `UNIQUE` on messages": (
        "two random message ids are never equal; the constraint is there for its index"
    ),
    "changes.py _change_of_claimed: `after.status is Status.DRAFTING` never": (
        "week_counters has no counter for a drafting run either; each of the two says what the other does"
    ),
    "changes.py week_counters: `case Status.QUEUED | Status.DRAFTING | Status.PUBLISH_UNKNOWN | Status.PUBLISHED`"
    " is not told apart": "nobody asks it of these states; the case is there so that every state is named",
    "changes.py Change.ends_whatever_the_count: without `and self.places < 0`": (
        "a run that ends without having held a place moves no count, so nobody asks"
    ),
    "changes.py Change.ends_whatever_the_count: `self.places < 0` becomes <=": (
        "a run that ends without having held a place moves no count, so nobody asks"
    ),
    "dynamodb.py _respelled: without `and write.part is _Part.CURSOR`": (
        "only a cursor's write names a source, and a failed cursor always does"
    ),
    "dynamodb.py _respelled: without was": (
        "a condition that failed brings the row as it then was, so its text is never the one that was asked for"
    ),
    "abandoned.py is_abandoned: `not run.lease_is_dead(now)` never": (
        "a lease that lives ends later than now, and its end is a sign of life: the comparison sees that too"
    ),
    "sweep.py changed_to: replace without `swept_until=until`": (
        "what lies before a schedule's last change is not due, wherever the mark stands"
    ),
    "sweep.py changed_to: replace without `swept_until=until` (2)": (
        "what lies before a schedule's last change is not due, wherever the mark stands"
    ),
    "sweep.py _Sweep._advance: `one.ends is not None` always": (
        "whatever is among the former definitions says when it was changed; the guard is for the type"
    ),
    "unsent.py is_unsent: without `or run.owner is not None`": (
        "a run whose owner has been gone for so long is abandoned, and that is asked beside it"
    ),
    "unsent.py is_unsent: without `and run.lease_is_dead(now)`": (
        "a run without an owner has no lease that could live"
    ),
    "withdrawing.py replaces: `older.slot < newer.slot` becomes <=": (
        "a draft of the same slot was turned away before; no run replaces itself"
    ),
    "withdrawing.py withdraw: `case Conflict() | NoSuchRun()` is not told apart": (
        "without the case the function ends, and that returns None too; the case is there so that each is named"
    ),
}
