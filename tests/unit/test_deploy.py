"""The files of `deploy/` parse, and what they name is there: commands, options, extras, metrics."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest
import yaml

from ragauge.cli.main import root as command_group
from ragauge.live.settings import LiveSettings
from tests.support.live_server import PROTOBUF, live_client, otlp_request
from tests.unit.live.test_prometheus import add_window

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
PORT = LiveSettings().port
INSTRUCTIONS = {
    "FROM", "COPY", "RUN", "USER", "WORKDIR", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK",
    "ENTRYPOINT", "CMD",
}  # fmt: skip


def parse(words: list[str]) -> None:
    """Read a command line as `ragauge` would; nothing is run."""
    name, *options = words
    context = click.Context(command_group)
    command = command_group.get_command(context, name)
    assert command is not None, f"there is no command {name}"
    if isinstance(command, click.Group):
        command, options = command.get_command(context, options[0]), options[1:]
        assert command is not None
    command.make_context(name, options, parent=context)


def container_lines() -> list[tuple[str, str]]:
    text = (DEPLOY / "Containerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    pairs = (line.strip().partition(" ") for line in lines)
    return [(instruction, value.strip()) for instruction, _, value in pairs]


def test_the_container_file_runs_commands_that_exist() -> None:
    lines = container_lines()
    assert {instruction for instruction, _ in lines} <= INSTRUCTIONS
    assert lines[0][0] == "FROM"
    values = dict(lines)
    assert json.loads(values["ENTRYPOINT"]) == ["ragauge"]
    parse(json.loads(values["CMD"]))
    assert values["EXPOSE"] == str(PORT)
    assert f":{PORT}/healthz" in values["HEALTHCHECK"]
    assert values["USER"] != "root"
    extras = re.search(r"/source\[([a-z,]+)\]", values["RUN"])
    assert extras is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])
    comments = re.findall(r"ragauge-live (token .*)", (DEPLOY / "Containerfile").read_text("utf-8"))
    parse(shlex.split(comments[0]))


def test_the_unit_of_systemd_starts_the_server() -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string((DEPLOY / "ragauge-live.service").read_text("utf-8"))
    assert unit.sections() == ["Unit", "Service", "Install"]
    service = unit["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert Path(program).name == "ragauge"
    parse(words)
    assert words[words.index("--port") + 1] == str(PORT)
    # The worker has the rest of the pipe and ends with it; only the main process is told.
    assert service["KillMode"] == "mixed"
    assert service["WorkingDirectory"].endswith(service["StateDirectory"])


def test_prometheus_reads_the_right_path() -> None:
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert job["static_configs"][0]["targets"] == [f"127.0.0.1:{PORT}"]
    assert job["authorization"]["type"] == "Bearer"


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `/metrics` says of a server where everything has happened."""
    folder = tmp_path_factory.mktemp("deploy")
    with live_client(folder) as client:
        state = client.app.state.live  # type: ignore[attr-defined]
        client.post("/v1/traces", content=otlp_request().SerializeToString(), headers=PROTOBUF)
        add_window(state, "shop")
        state.faults["collector"] = 1
        state.worker_state = lambda: {"running": True, "restarts": 0, "pid": 1}
        with state.databases() as database, database.transaction() as execute:
            execute(
                "INSERT INTO live_alerts "
                "(tenant, app, rule, series, state, since, seen, record_json) "
                "VALUES ('', 'shop', 'r', '', 'firing', 0, 0, '{}')",
                (),
            )
        return client.get("/metrics").text


def test_the_dashboard_of_grafana_asks_for_metrics_and_labels_that_exist(metrics: str) -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text("utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [one["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    assert len(queries) > 10
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    named = set(re.findall(r"ragauge_\w+", " ".join(queries)))
    written = set(re.findall(r"^# TYPE (\w+)", metrics, re.MULTILINE))
    assert named - written == set()
    for query in queries:
        assert query.count("(") == query.count(")")
        assert query.count("{") == query.count("}")
        for metric, labels in re.findall(r"(ragauge_\w+)\{([^}]*)\}", query):
            line = re.search(rf"^{metric}\{{(.*)\}}", metrics, re.MULTILINE)
            assert line is not None
            own = set(re.findall(r'(\w+)="', line[1]))
            assert set(re.findall(r"(\w+)\s*[=!]~?\s*\"", labels)) <= own
