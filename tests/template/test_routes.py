"""The HTTP API and the review function agree on the routes; one that only one of them knew would answer nobody."""

import review
from template.checks.desk import DATA_ROUTES, PUBLIC_ROUTES


def test_the_api_and_the_desk_know_the_same_routes() -> None:
    answered = {
        f"{method} {path}".replace("<", "{").replace(">", "}")
        for path, methods in review._allowed.items()
        for method in methods
        if not path.startswith("/assets/")
    }
    assert answered | {"GET /assets/{proxy+}"} == {*PUBLIC_ROUTES, *DATA_ROUTES}
