"""The review desk: what may be had without a login, and what may not."""

import re

from template.expansion import Template, named, resources, text
from template.faults import Fault, add, arn, drop, put, remove
from template.words import the_only

PUBLIC_ROUTES = {
    "GET /": "the page itself, without data",
    "GET /assets/{proxy+}": "the page's script and style",
    "GET /config": "where the login is, which the page must know before anybody has logged in",
    "GET /health": "whether the desk is up, for the monitor drafter",
}

DATA_ROUTES = frozenset(
    {
        "GET /drafts",
        "GET /drafts/{drafter}/{slot}",
        "POST /drafts/{drafter}/{slot}/approve",
        "POST /drafts/{drafter}/{slot}/reject",
        "GET /runs",
        "GET /runs/{drafter}/{slot}",
        "GET /drafters",
    }
)


def there_is_one_api(template: Template) -> list[str]:
    """A route that names no API would silently make SAM add a second one, without an authorizer."""
    kinds = ("AWS::ApiGatewayV2::Api", "AWS::ApiGateway::RestApi", "AWS::Lambda::Url")
    found = [name for kind in kinds for name in resources(template, kind)]
    return [] if found == ["DeskApi"] else [f"the APIs are {found}"]


def data_routes_need_a_reviewer(template: Template) -> list[str]:
    """A route with data takes an access token with the reviewers' scope; only the listed ones take nothing."""
    scope = {
        f"review/{one['ScopeName']}" for one in the_only(template, "AWS::Cognito::UserPoolResourceServer")["Scopes"]
    }
    faults = []
    for name, route in resources(template, "AWS::ApiGatewayV2::Route").items():
        key = route["RouteKey"]
        if route.get("AuthorizationType", "NONE") == "NONE":
            if key not in PUBLIC_ROUTES:
                faults.append(f"{name}: {key} needs no login")
        elif route["AuthorizationType"] != "JWT" or named(route.get("AuthorizerId")) != {"ReviewerAuthorizer"}:
            faults.append(f"{name}: {key} does not use the reviewers' authorizer")
        elif set(route.get("AuthorizationScopes", ())) != scope:
            faults.append(f"{name}: {key} takes a token without the scope")
    return faults


def the_desk_has_its_routes(template: Template) -> list[str]:
    """The routes are those of the desk, and each leads to the review function."""
    routes = resources(template, "AWS::ApiGatewayV2::Route")
    keys = sorted(route["RouteKey"] for route in routes.values())
    faults = [] if keys == sorted({*PUBLIC_ROUTES, *DATA_ROUTES}) else [f"the routes are {keys}"]
    faults += [name for name, route in routes.items() if named(route["Target"]) != {"DeskIntegration"}]
    integration = the_only(template, "AWS::ApiGatewayV2::Integration")
    return faults + ([] if named(integration["IntegrationUri"]) == {"ReviewFunction"} else ["leads elsewhere"])


def the_login_is_strict(template: Template) -> list[str]:
    """Nobody signs up; the client is public, uses codes only, and answers only to the desk; tokens are the pool's."""
    pool = the_only(template, "AWS::Cognito::UserPool")
    client = the_only(template, "AWS::Cognito::UserPoolClient")
    jwt = the_only(template, "AWS::ApiGatewayV2::Authorizer")["JwtConfiguration"]
    wanted = {
        "anybody can sign up": pool["AdminCreateUserConfig"].get("AllowAdminCreateUserOnly") is True,
        "passwords are short": pool["Policies"]["PasswordPolicy"].get("MinimumLength", 8) >= 12,
        "there is no second factor": pool.get("MfaConfiguration") in ("OPTIONAL", "ON"),
        "a public client has a secret": client.get("GenerateSecret") is False,
        "tokens are given without a code": client.get("AllowedOAuthFlows") == ["code"],
        "the login leads elsewhere": all(
            text(url) == "${DeskApi.ApiEndpoint}/" for url in client["CallbackURLs"] + client["LogoutURLs"]
        ),
        "the authorizer trusts another issuer": text(jwt["Issuer"]) == "${ReviewerPool.ProviderURL}",
        "the authorizer trusts another client": [text(one) for one in jwt["Audience"]] == ["${ReviewerClient}"],
    }
    return [fault for fault, holds in wanted.items() if not holds]


def the_desk_is_limited_and_logged(template: Template) -> list[str]:
    """Requests are throttled and logged, without query strings and bodies; the page's origin is the only one."""
    stage = the_only(template, "AWS::ApiGatewayV2::Stage")
    settings = stage.get("DefaultRouteSettings", {})
    logs = stage.get("AccessLogSettings", {})
    wanted = {
        "is not throttled": 0 < settings.get("ThrottlingRateLimit", 0) <= 100,
        "bursts without a limit": 0 < settings.get("ThrottlingBurstLimit", 0) <= 200,
        "has no access log": named(logs.get("DestinationArn")) == {"DeskLogs"},
        "logs what may be secret": not re.search(r"\$context\.path\b|querystring", str(logs.get("Format"))),
        "answers other origins": "CorsConfiguration" not in the_only(template, "AWS::ApiGatewayV2::Api"),
    }
    return [f"DeskStage: {fault}" for fault, holds in wanted.items() if not holds]


def invocations_name_their_source(template: Template) -> list[str]:
    """A service may invoke a function only on behalf of this stack's own resource."""
    own = set(template["Resources"])
    return [
        f"{name}: lets anybody's {permission['Principal']} invoke"
        for name, permission in resources(template, "AWS::Lambda::Permission").items()
        if not named(permission.get("SourceArn")) & own
    ]


FAULTS: tuple[Fault, ...] = (
    Fault(
        there_is_one_api,
        "one that SAM added",
        add("ServerlessHttpApi", "AWS::ApiGatewayV2::Api", ProtocolType="HTTP"),
    ),
    Fault(there_is_one_api, "a function URL", add("Url", "AWS::Lambda::Url", AuthType="NONE")),
    Fault(data_routes_need_a_reviewer, "open", put("DraftsRoute", "AuthorizationType", "NONE")),
    Fault(data_routes_need_a_reviewer, "unsaid", drop("ApproveRoute", "AuthorizationType")),
    Fault(data_routes_need_a_reviewer, "any AWS user", put("RunsRoute", "AuthorizationType", "AWS_IAM")),
    Fault(data_routes_need_a_reviewer, "an ID token", drop("RejectRoute", "AuthorizationScopes")),
    Fault(
        data_routes_need_a_reviewer,
        "another scope",
        put("ReviewScopes", "Scopes.0.ScopeName", "read"),
    ),
    Fault(the_desk_has_its_routes, "a route too few", remove("RejectRoute")),
    Fault(the_desk_has_its_routes, "another method", put("ApproveRoute", "RouteKey", "GET /approve")),
    Fault(
        the_desk_has_its_routes,
        "another function",
        put("DeskIntegration", "IntegrationUri", arn("DraftFunction")),
    ),
    Fault(
        the_login_is_strict,
        "sign-up",
        put("ReviewerPool", "AdminCreateUserConfig.AllowAdminCreateUserOnly", False),
    ),
    Fault(the_login_is_strict, "implicit", put("ReviewerClient", "AllowedOAuthFlows", ["code", "implicit"])),
    Fault(the_login_is_strict, "a secret", put("ReviewerClient", "GenerateSecret", True)),
    Fault(the_login_is_strict, "elsewhere", put("ReviewerClient", "CallbackURLs", ["http://localhost/"])),
    Fault(the_login_is_strict, "short", drop("ReviewerPool", "Policies.PasswordPolicy.MinimumLength")),
    Fault(the_login_is_strict, "one factor", drop("ReviewerPool", "MfaConfiguration")),
    Fault(
        the_login_is_strict,
        "another pool",
        put("ReviewerAuthorizer", "JwtConfiguration.Issuer", "https://login.example.org"),
    ),
    Fault(
        the_login_is_strict,
        "another client",
        put("ReviewerAuthorizer", "JwtConfiguration.Audience", ["desk"]),
    ),
    Fault(the_desk_is_limited_and_logged, "no limit", drop("DeskStage", "DefaultRouteSettings")),
    Fault(the_desk_is_limited_and_logged, "no log", drop("DeskStage", "AccessLogSettings")),
    Fault(
        the_desk_is_limited_and_logged,
        "codes in the log",
        put("DeskStage", "AccessLogSettings.Format", '{"path": "$context.path"}'),
    ),
    Fault(
        the_desk_is_limited_and_logged,
        "any origin",
        put("DeskApi", "CorsConfiguration", {"AllowOrigins": ["*"]}),
    ),
    Fault(invocations_name_their_source, "any API", drop("DeskPermission", "SourceArn")),
)
