"""The functions, the table, the bucket and the outputs."""

from typing import Any

from template.expansion import Template, named, resources, text
from template.faults import Fault, add, drop, put, remove
from template.words import FUNCTIONS, functions, secure_transport, variables_of

OUTPUTS = frozenset(
    {
        "TableName",
        "RunsQueueUrl",
        "DeadRunsQueueUrl",
        "DeadTicksQueueUrl",
        "BucketName",
        "ScheduleGroupName",
        "DeskUrl",
        "UserPoolId",
        "DispatchFunctionName",
    }
)

_TABLE: dict[str, Any] = {
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "queue",
            "KeySchema": [
                {"AttributeName": "queue", "KeyType": "HASH"},
                {"AttributeName": "queue_at", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "StreamSpecification": {"StreamViewType": "NEW_AND_OLD_IMAGES"},
    "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True},
    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
    "DeletionProtectionEnabled": {"Fn::If": ["IsProd", True, False]},
}

_BUCKET: dict[str, Any] = {
    "PublicAccessBlockConfiguration": {
        "BlockPublicAcls": True,
        "BlockPublicPolicy": True,
        "IgnorePublicAcls": True,
        "RestrictPublicBuckets": True,
    },
    "VersioningConfiguration": {"Status": "Enabled"},
    "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
    "BucketEncryption": {
        "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
    },
}


def functions_read_their_own_variables(template: Template) -> list[str]:
    """A function's environment is what its settings class reads, and what the logger and the metrics read."""
    from galley import settings

    watched = {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_LOG_LEVEL"}
    faults = []
    for name in FUNCTIONS:
        fields = getattr(settings, f"{name.title()}Settings").model_fields.values()
        wanted = {field.alias for field in fields} | watched
        found = set(variables_of(template, name))
        faults += [f"{name}: {variable} is missing" for variable in sorted(wanted - found)]
        faults += [f"{name}: reads no {variable}" for variable in sorted(found - wanted)]
        if variables_of(template, name).get("POWERTOOLS_SERVICE_NAME") != name:
            faults.append(f"{name}: logs under another name")
    return faults


def functions_are_as_agreed(template: Template) -> list[str]:
    """There are five functions, on one runtime, each with its code, time limit, traces and its own structured log."""
    faults = []
    limits = {"dispatch": 30, "draft": 300, "recover": 300, "review": 20, "publish": 60}
    if set(functions(template)) != {f"{name.title()}Function" for name in FUNCTIONS}:
        faults.append(f"the functions are {sorted(functions(template))}")
    groups = resources(template, "AWS::Logs::LogGroup")
    for name in FUNCTIONS:
        function = functions(template)[f"{name.title()}Function"]
        logging = function.get("LoggingConfig", {})
        wanted = {
            f"runs on {function['Runtime']}": function["Runtime"] == "python3.13",
            "has a fixed architecture": [text(one) for one in function["Architectures"]] == ["${Architecture}"],
            f"may take {function['Timeout']} s": function["Timeout"] == limits[name],
            "is not traced": function.get("TracingConfig") == {"Mode": "Active"},
            "does not log JSON": logging.get("LogFormat") == "JSON",
            "has no log group of its own": named(logging.get("LogGroup")) == {f"{name.title()}Logs"},
            "has its code elsewhere": function["Code"]["S3Key"] == f"functions/{name}",
            "has another handler": function["Handler"] == f"{name}.handler",
        }
        faults += [f"{name}: {fault}" for fault, holds in wanted.items() if not holds]
    faults += [f"{name}: keeps logs forever" for name, group in groups.items() if "RetentionInDays" not in group]
    return faults


def layers_fit_the_functions(template: Template) -> list[str]:
    """There is one layer, and every function uses it."""
    (layer,) = resources(template, "AWS::Lambda::LayerVersion")
    return [
        f"{name}: does not use the layer"
        for name, function in functions(template).items()
        if [named(one) for one in function.get("Layers", [])] != [{layer}]
    ]


def the_table_is_safe(template: Template) -> list[str]:
    """The table outlives the stack, can be restored, and cannot be deleted in prod."""
    return [*_survives(template, "Table"), *_wrong(template, "Table", _TABLE)]


def the_bucket_is_closed(template: Template) -> list[str]:
    """The bucket outlives the stack, is private and encrypted, and refuses an insecure connection."""
    faults = [*_survives(template, "Bucket"), *_wrong(template, "Bucket", _BUCKET)]
    if "Bucket" not in secure_transport(template, "AWS::S3::BucketPolicy", "Bucket"):
        faults.append("Bucket: can be read over an insecure connection")
    return faults


def outputs_are_what_the_command_reads(template: Template) -> list[str]:
    """``galley --stack`` reads these names and no other."""
    return [f"{name}: missing or unknown" for name in sorted(OUTPUTS ^ set(template["Outputs"]))]


def _survives(template: Template, name: str) -> list[str]:
    resource = template["Resources"][name]
    return [
        f"{name}: {field} must be Retain"
        for field in ("DeletionPolicy", "UpdateReplacePolicy")
        if resource.get(field) != "Retain"
    ]


def _wrong(template: Template, name: str, wanted: dict[str, Any]) -> list[str]:
    properties = template["Resources"][name]["Properties"]
    return [f"{name}: {field} must be {value}" for field, value in wanted.items() if properties.get(field) != value]


FAULTS: tuple[Fault, ...] = (
    Fault(
        functions_read_their_own_variables,
        "a key in the clear",
        put("DraftFunction", "Environment.Variables.ANTHROPIC_API_KEY", "sk-ant"),
    ),
    Fault(
        functions_read_their_own_variables,
        "one missing",
        drop("RecoverFunction", "Environment.Variables.GALLEY_TABLE"),
    ),
    Fault(functions_are_as_agreed, "an old runtime", put("ReviewFunction", "Runtime", "python3.11")),
    Fault(functions_are_as_agreed, "one architecture", put("DraftFunction", "Architectures", ["x86_64"])),
    Fault(functions_are_as_agreed, "plain text", put("DraftFunction", "LoggingConfig.LogFormat", "Text")),
    Fault(functions_are_as_agreed, "a log without end", drop("DraftLogs", "RetentionInDays")),
    Fault(functions_are_as_agreed, "another limit", put("ReviewFunction", "Timeout", 60)),
    Fault(functions_are_as_agreed, "a sixth function", add("Sixth", "AWS::Lambda::Function")),
    Fault(layers_fit_the_functions, "without it", drop("ReviewFunction", "Layers")),
    Fault(the_table_is_safe, "no recovery", drop("Table", "PointInTimeRecoverySpecification")),
    Fault(the_table_is_safe, "half a stream", put("Table", "StreamSpecification.StreamViewType", "NEW_IMAGE")),
    Fault(
        the_table_is_safe, "gone with the stack", lambda template: template["Resources"]["Table"].pop("DeletionPolicy")
    ),
    Fault(the_bucket_is_closed, "public", drop("Bucket", "PublicAccessBlockConfiguration")),
    Fault(the_bucket_is_closed, "insecure", remove("BucketPolicy")),
    Fault(outputs_are_what_the_command_reads, "one missing", remove("TableName", "Outputs")),
)
