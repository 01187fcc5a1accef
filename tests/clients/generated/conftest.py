"""The address of the gateway, and a client that openapi-python-client generates from its live OpenAPI document."""

import importlib
import os
import pathlib
import subprocess
import sys

import httpx
import pytest

ORIGIN = os.environ["REFRAME_BASE_URL"].removesuffix("/v1")
# Without proxies of the environment.
HTTP = httpx.Client(base_url=ORIGIN, trust_env=False, timeout=60)


@pytest.fixture(scope="session")
def http():
    return HTTP


@pytest.fixture(scope="session")
def document():
    return HTTP.get("/openapi.json").raise_for_status().json()


@pytest.fixture(scope="session")
def generated(tmp_path_factory):
    """The generated package. A warning means that the generator left something out."""
    folder = tmp_path_factory.mktemp("generated")
    source = folder / "openapi.json"
    source.write_text(HTTP.get("/openapi.json").raise_for_status().text)
    tools = pathlib.Path(sys.executable).parent
    run = subprocess.run(
        [tools / "openapi-python-client", "generate", "--meta", "none", "--path", source, "--output-path", folder / "api_client"],
        capture_output=True,
        text=True,
        # It formats what it wrote with ruff.
        env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
    )
    output = run.stdout + run.stderr
    assert run.returncode == 0, output
    assert "arning" not in output and "Unable" not in output, output
    sys.path.insert(0, str(folder))
    return importlib.import_module("api_client")
