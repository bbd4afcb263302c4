"""The compose file and the manifest for Kubernetes: commands, names and probes are there."""

import warnings
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from command import run

from broker.keys import BY_NAME
from broker.monitoring.doorway import HEALTH

OPERATIONS = Path(__file__).parents[2] / "examples" / "operations"
COMPOSE = yaml.safe_load((OPERATIONS / "compose.yaml").read_text())
PARTS = [*yaml.safe_load_all((OPERATIONS / "kubernetes.yaml").read_text())]
OF_KIND = {part["kind"]: part for part in PARTS}
POD = OF_KIND["StatefulSet"]["spec"]["template"]
(CONTAINER,) = POD["spec"]["containers"]


def effective(words, environment, monkeypatch):
    """What a broker that is started so would do, as ``--check`` prints it."""
    for name, value in environment.items():
        assert name.removeprefix("REXMQ_").lower() in BY_NAME, name
        monkeypatch.setenv(name, value)
    done = run(*words[1:], "--check")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part["kind"])
def test_a_manifest_is_of_the_schema_of_its_kind(part):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a schema's references
        kubernetes_validate.validate(part, "1.32", strict=True)


def test_the_pods_start_brokers_of_one_network(monkeypatch):
    words = [*CONTAINER["command"], *CONTAINER["args"]]
    (name,) = [one["name"] for one in CONTAINER["env"]]
    text = effective(words, {name: "rexmq-1"}, monkeypatch)
    assert 'name = "rexmq-1"' in text
    claim = OF_KIND["StatefulSet"]["spec"]["volumeClaimTemplates"][0]["metadata"]["name"]
    ((mount),) = CONTAINER["volumeMounts"]
    assert mount["name"] == claim
    assert f'data = "{mount["mountPath"]}/' in text
    pods = OF_KIND["StatefulSet"]["metadata"]["name"], OF_KIND["StatefulSet"]["spec"]["replicas"]
    links = [f"tcp://{pods[0]}-{n}.{OF_KIND['Service']['metadata']['name']}" for n in range(3)]
    assert pods[1] == len(links)
    assert all(f'"{link}:7461"' in text for link in links)


def test_names_labels_and_ports_of_the_manifest_belong_together():
    service, pods = OF_KIND["Service"]["spec"], OF_KIND["StatefulSet"]["spec"]
    assert pods["serviceName"] == OF_KIND["Service"]["metadata"]["name"]
    assert service["clusterIP"] == "None"
    labels = POD["metadata"]["labels"]
    selectors = [
        service["selector"],
        pods["selector"]["matchLabels"],
        OF_KIND["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        OF_KIND["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector == labels for selector in selectors)
    ports = {one["name"]: one["containerPort"] for one in CONTAINER["ports"]}
    assert {one["name"]: one["port"] for one in service["ports"]} == ports
    assert [f":{port}" in " ".join(CONTAINER["args"]) for port in ports.values()] == [True, True]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = CONTAINER[probe]["httpGet"]
        assert asked["path"] in HEALTH
        assert asked["port"] in ports


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_the_services_start_brokers_of_one_network(monkeypatch, name):
    service = COMPOSE["services"][name]
    words = [*service["entrypoint"], *service["command"]]
    text = effective(words, service["environment"], monkeypatch)
    assert f'name = "{name}"' in text
    others = [word for word in service["command"] if word.startswith("--link=")]
    assert {word.partition("//")[2].partition(":")[0] for word in others} < {*COMPOSE["services"]}
    assert (name == "b1") == (not others)
    for volume in service["volumes"]:
        assert volume.partition(":")[0] in COMPOSE["volumes"]
    assert service["healthcheck"]["test"][-1].partition("9464")[2].partition("'")[0] in HEALTH
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert (OPERATIONS / service["build"]["context"] / service["build"]["dockerfile"]).exists()
