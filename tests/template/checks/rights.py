"""The roles: each function may do what it does, and no more."""

from template.expansion import Template, as_list, named, resources, text
from template.faults import Fault, add, allow, arn, deny, drop, put
from template.words import (
    FUNCTIONS,
    async_settings,
    failure_destination,
    functions,
    mappings,
    rights_in,
    role_of,
    schedules,
    target_of,
    variables_of,
)

WIDE_ACTIONS = {
    "xray:PutTraceSegments": "X-Ray has no resource for segments",
    "xray:PutTelemetryRecords": "X-Ray has no resource for telemetry",
    "scheduler:ListSchedules": "Scheduler checks it against schedule/*/*, whichever group the call names",
}

GIVEN_BY = {
    "GALLEY_TABLE": "Table",
    "GALLEY_RUNS_QUEUE_URL": "RunsQueue",
    "GALLEY_DEAD_RUNS_QUEUE_URL": "DeadRunsQueue",
    "GALLEY_BUCKET": "Bucket",
    "GALLEY_SCHEDULE_GROUP": "ScheduleGroup",
    "GALLEY_MODEL_KEY_ARN": "ModelKeyArn",
}
"""Which variable names which thing: a function has rights on what it is given, and on nothing else."""

STORE_ACTIONS = frozenset(
    f"dynamodb:{name}" for name in ("GetItem", "Query", "PutItem", "UpdateItem", "ConditionCheckItem")
)
"""What the store's operations need. A transaction is authorised by the actions inside it."""


def nothing_is_allowed_on_everything(template: Template) -> list[str]:
    """An allowed resource names something of this stack, unless the action is in the short list with its reason."""
    own = {*template["Resources"], *template["Parameters"]}
    return [
        str(right)
        for right in rights_in(template)
        if "*" in right.resource and not named(right.resource) & own and right.action not in WIDE_ACTIONS
    ]


def actions_are_spelled_out(template: Template) -> list[str]:
    """No allowed action has a wildcard."""
    return [str(right) for right in rights_in(template) if "*" in right.action]


def functions_have_their_own_roles(template: Template) -> list[str]:
    """Each function has one role, nobody else's, that Lambda alone can take; SAM made none by itself."""
    faults = []
    roles = resources(template, "AWS::IAM::Role")
    wanted = {*(role_of(name) for name in FUNCTIONS), "SchedulerRole"}
    if set(roles) != wanted:
        faults.append(f"the roles are {sorted(roles)}")
    for name in FUNCTIONS:
        if named(functions(template)[f"{name.title()}Function"]["Role"]) != {role_of(name)}:
            faults.append(f"{name}: has not its own role")
    for name, role in roles.items():
        service = "scheduler.amazonaws.com" if name == "SchedulerRole" else "lambda.amazonaws.com"
        trusted = [statement["Principal"] for statement in role["AssumeRolePolicyDocument"]["Statement"]]
        if trusted != [{"Service": service}]:
            faults.append(f"{name}: trusts {trusted}")
        faults += [
            f"{name}: has {text(one)}" for one in role.get("ManagedPolicyArns", []) if text(one).startswith("arn")
        ]
    return faults


def functions_reach_what_they_are_given(template: Template) -> list[str]:
    """A function has rights on exactly what its environment names, on its own log, and on where its failures go."""
    faults = []
    for name in FUNCTIONS:
        given = {GIVEN_BY[one] for one in variables_of(template, name) if one in GIVEN_BY}
        kept = {f"{name.title()}Logs", *_failures_of(template, name)}
        fed = set().union(
            *(
                named(mapping["EventSourceArn"])
                for mapping in mappings(template).values()
                if named(mapping["FunctionName"]) == {f"{name.title()}Function"}
            )
        )
        own = {*template["Resources"], *template["Parameters"]}
        reached = set().union(*(named(right.resource) & own for right in rights_in(template, role_of(name))))
        faults += [f"{name}: is given {one}, and has no right on it" for one in sorted(given - reached)]
        faults += [
            f"{name}: has rights on {one}, which it is not given" for one in sorted(reached - given - kept - fed)
        ]
        faults += [f"{name}: cannot write to {one}" for one in sorted(kept - reached)]
    return faults


def the_table_is_used_through_the_store(template: Template) -> list[str]:
    """Only the actions of the store's operations are allowed on the table: no scan, no deletion, no batch."""
    return [
        str(right)
        for right in rights_in(template)
        if right.action.startswith("dynamodb:")
        and not right.resource.endswith("/stream/*")
        and right.action not in STORE_ACTIONS
    ]


def objects_are_written_where_they_belong(template: Template) -> list[str]:
    """draft writes the index, publish what was approved; nobody touches a drafter's sources."""
    allowed = {
        ("DraftRole", "s3:PutObject", "${Bucket.Arn}/index/*"),
        ("DraftRole", "s3:DeleteObject", "${Bucket.Arn}/index/*"),
        ("PublishRole", "s3:PutObject", "${Bucket.Arn}/published/*"),
    }
    return [
        str(right)
        for right in rights_in(template)
        if right.action.startswith(("s3:Put", "s3:Delete"))
        and (right.policy, right.action, right.resource) not in allowed
    ]


def only_draft_reaches_the_model(template: Template) -> list[str]:
    """The key and Bedrock are draft's alone, each only where the provider is chosen."""
    faults = [
        str(right)
        for right in rights_in(template)
        if right.action.startswith(("secretsmanager:", "bedrock")) and right.policy != "DraftRole"
    ]
    conditions = {
        statement["Fn::If"][0]: as_list(statement["Fn::If"][1])[0]["Action"]
        for policy in template["Resources"]["DraftRole"]["Properties"]["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        if "Fn::If" in statement
    }
    if conditions != {
        "UsesAnthropic": "secretsmanager:GetSecretValue",
        "UsesBedrock": "bedrock-mantle:CreateInference",
    }:
        faults.append(f"DraftRole: the model's rights depend on {conditions}")
    return faults


def the_scheduler_is_no_deputy(template: Template) -> list[str]:
    """Scheduler may take its role only for this account's own groups, and do no more than invoke and keep failures."""
    role = template["Resources"]["SchedulerRole"]["Properties"]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    condition = trust.get("Condition", {}).get("StringEquals", {})
    groups = {f"${{{name}.Arn}}" for name in resources(template, "AWS::Scheduler::ScheduleGroup")}
    faults = []
    if text(condition.get("aws:SourceAccount")) != "${AWS::AccountId}":
        faults.append("SchedulerRole: can be taken for another account")
    if {text(one) for one in as_list(condition.get("aws:SourceArn"))} != groups:
        faults.append("SchedulerRole: can be taken for another group")
    targets = {text(target_of(schedule)["Arn"]) for schedule in schedules(template).values()}
    wanted = {("lambda:InvokeFunction", one) for one in targets} | {("sqs:SendMessage", "${DeadTicksQueue.Arn}")}
    rights = {(right.action, right.resource) for right in rights_in(template, "SchedulerRole")}
    faults += [f"SchedulerRole: {action} on {resource}" for action, resource in rights ^ wanted]
    faults += [
        f"{name}: uses another role"
        for name, schedule in schedules(template).items()
        if named(target_of(schedule)["RoleArn"]) != {"SchedulerRole"}
    ]
    return faults


def _failures_of(template: Template, function: str) -> set[str]:
    configured = [*async_settings(template), *mappings(template).values()]
    own = [one for one in configured if named(one["FunctionName"]) == {f"{function.title()}Function"}]
    return set().union(*(failure_destination(one) for one in own))


FAULTS: tuple[Fault, ...] = (
    Fault(nothing_is_allowed_on_everything, "everything", allow("DraftRole", "s3:GetObject", "*")),
    Fault(
        nothing_is_allowed_on_everything,
        "every table",
        allow("PublishRole", "dynamodb:GetItem", {"Fn::Sub": "arn:${AWS::Partition}:dynamodb:*:*:table/*"}),
    ),
    Fault(actions_are_spelled_out, "all actions", allow("DraftRole", "s3:*", {"Fn::Sub": "${Bucket.Arn}/*"})),
    Fault(functions_have_their_own_roles, "a shared role", put("ReviewFunction", "Role", arn("DraftRole"))),
    Fault(
        functions_have_their_own_roles,
        "one that SAM made",
        add("ReviewFunctionRole", "AWS::IAM::Role", AssumeRolePolicyDocument={"Statement": []}),
    ),
    Fault(
        functions_have_their_own_roles,
        "a broad policy",
        put("DraftRole", "ManagedPolicyArns", ["arn:aws:iam::aws:policy/AmazonSQSFullAccess"]),
    ),
    Fault(
        functions_have_their_own_roles,
        "anybody",
        put("ReviewRole", "AssumeRolePolicyDocument.Statement.0.Principal", {"AWS": "*"}),
    ),
    Fault(
        functions_reach_what_they_are_given,
        "too much",
        allow("DispatchRole", "dynamodb:PutItem", arn("Table")),
    ),
    Fault(
        functions_reach_what_they_are_given,
        "too little",
        deny("RecoverRole", "AskForRuns"),
    ),
    Fault(
        functions_reach_what_they_are_given,
        "no place for failures",
        deny("DispatchRole", "KeepFailedTicks"),
    ),
    Fault(the_table_is_used_through_the_store, "a scan", allow("ReviewRole", "dynamodb:Scan", arn("Table"))),
    Fault(
        the_table_is_used_through_the_store,
        "a deletion",
        allow("RecoverRole", "dynamodb:DeleteItem", arn("Table")),
    ),
    Fault(
        objects_are_written_where_they_belong,
        "sources",
        allow("DraftRole", "s3:PutObject", {"Fn::Sub": "${Bucket.Arn}/*"}),
    ),
    Fault(
        objects_are_written_where_they_belong,
        "the index",
        allow("PublishRole", "s3:DeleteObject", {"Fn::Sub": "${Bucket.Arn}/index/*"}),
    ),
    Fault(
        only_draft_reaches_the_model,
        "another function",
        allow("ReviewRole", "secretsmanager:GetSecretValue", {"Ref": "ModelKeyArn"}),
    ),
    Fault(
        only_draft_reaches_the_model,
        "always",
        put(
            "DraftRole",
            "Policies.0.PolicyDocument.Statement.9",
            {"Effect": "Allow", "Action": "bedrock-mantle:CreateInference", "Resource": "*"},
        ),
    ),
    Fault(
        the_scheduler_is_no_deputy,
        "any account",
        drop("SchedulerRole", "AssumeRolePolicyDocument.Statement.0.Condition"),
    ),
    Fault(
        the_scheduler_is_no_deputy,
        "any group",
        drop("SchedulerRole", "AssumeRolePolicyDocument.Statement.0.Condition.StringEquals.aws:SourceArn"),
    ),
    Fault(
        the_scheduler_is_no_deputy,
        "another function",
        allow("SchedulerRole", "lambda:InvokeFunction", arn("PublishFunction")),
    ),
    Fault(
        the_scheduler_is_no_deputy,
        "another role",
        put("DispatchFunctionDailyDigest", "Target.RoleArn", arn("DispatchRole")),
    ),
)
