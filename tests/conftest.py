import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what the commands of script tests gave into the scripts",
    )


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture
def own_strategies(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is registered in this test is known in no other."""
    from routing.network import strategy

    monkeypatch.setattr(strategy, "_STRATEGIES", dict(strategy._STRATEGIES))
