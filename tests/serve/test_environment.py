"""The service as an environment: episodes over HTTP, and the environment of Gymnasium."""

import asyncio
import json
import math
from inspect import signature
from typing import Any

import numpy as np
import pytest

from planish.core import PlanishError
from serve.conftest import TOKENS, Service
from serve.test_http import BEARER, steps


def act(service: Service, what: str, action: object = None, method: str = "POST") -> tuple[int, Any]:
    body = json.dumps({"action": action} if action else {})
    return service.send(method, f"/openenv/{what}", body, Authorization=BEARER)


def test_an_episode(service: Service) -> None:
    status, answer = act(service, "step", {"step": steps(1)[0]})
    assert (status, answer["error"]["code"]) == (400, "bad_request")
    status, begun = act(service, "reset")
    assert (status, begun["reward"], begun["done"]) == (200, None, False)
    assert begun["observation"]["steps"] == []
    _, found = act(service, "step", {"step": ["Set", {"knob": 0, "value": 2}]})
    observed = found["observation"]
    assert observed["steps"] == steps(2)
    assert found["reward"] == pytest.approx(math.log2(observed["gain"] / begun["observation"]["gain"]))
    assert observed["next_steps"]
    _, state = act(service, "state", method="GET")
    assert (state["step_count"], state["steps"]) == (1, steps(2))
    _, failed = act(service, "step", {"steps": steps(0, 0, 19)})
    assert (failed["reward"], failed["done"]) == (-1.0, True)
    assert act(service, "step", {"step": steps(1)[0]})[0] == 400


def test_what_is_no_action(service: Service) -> None:
    act(service, "reset")
    for action in ({"code": "x"}, {"steps": 3}, {"step": ["Exec", {}]}):
        assert act(service, "step", action)[0] in (400, 422)
    assert service.send("POST", "/openenv/reset", "{}")[0] == 401
    assert service.send("GET", "/openenv/step", Authorization=BEARER)[0] == 405


def test_messages_over_a_websocket(service: Service) -> None:
    pytest.importorskip("websockets", reason="needs websockets: pip install 'planish[serve]'")
    from websockets.exceptions import ConnectionClosedOK, InvalidStatus
    from websockets.sync.client import connect

    url = f"ws://127.0.0.1:{service.port}/openenv/ws"
    with connect(url, additional_headers={"Authorization": BEARER}) as socket:

        def ask(message: str) -> tuple[str, Any]:
            socket.send(message)
            answer = json.loads(socket.recv())
            return answer["type"], answer["data"]

        for malformed in ("", "{", "[]", '{"type": "step"}', '{"type": "state"}', '{"type": "\\ud800"}'):
            assert ask(malformed)[0] == "error"
        assert ask('{"type": "reset", "data": {"seed": 3}}')[1]["observation"]["steps"] == []
        found = ask(json.dumps({"type": "step", "data": {"step": steps(5)[0]}}))
        assert found[0] == "observation"
        assert found[1]["observation"]["steps"] == steps(5)
        assert ask('{"type": "state"}')[1]["step_count"] == 1
        socket.send('{"type": "close"}')
        with pytest.raises(ConnectionClosedOK):
            socket.recv()
    with pytest.raises(InvalidStatus, match="401"), connect(url):
        pass


def test_the_client_of_openenv(service: Service) -> None:
    pytest.importorskip("openenv", reason="needs OpenEnv: pip install openenv")
    from openenv.core import GenericEnvClient  # pyright: ignore[reportMissingImports]

    async def episode(url: str, **options: Any) -> None:
        async with GenericEnvClient(base_url=url, **options) as environment:
            with pytest.raises(RuntimeError, match="reset first"):
                await environment.state()
            begun = await environment.reset(seed=3)
            assert (begun.reward, begun.done, begun.observation["steps"]) == (None, False, [])
            found = await environment.step({"step": ["Set", {"knob": 1, "value": 2}]})
            gains = found.observation["gain"], begun.observation["gain"]
            assert found.reward == pytest.approx(math.log2(gains[0] / gains[1]))
            with pytest.raises(RuntimeError, match="unknown_step"):
                await environment.step({"step": ["Exec", {}]})
            state = await environment.state()
            assert (state["step_count"], state["steps"]) == (1, [["Set", {"knob": 1, "value": 2}]])
            async with GenericEnvClient(base_url=url, **options) as other:  # an episode of its own
                await other.reset()
                assert (await other.state())["step_count"] == 0
            failed = await environment.step({"steps": steps(0, 0, 19)})
            assert (failed.reward, failed.done) == (-1.0, True)

    at = f"127.0.0.1:{service.port}/openenv"
    asyncio.run(episode(f"http://agent:{TOKENS['agent']}@{at}"))
    if "headers" in signature(GenericEnvClient).parameters:  # since 0.10 at the latest
        asyncio.run(episode(f"http://{at}", headers={"Authorization": BEARER}))
    for wrong in (f"http://{at}", f"http://agent:guess@{at}"):
        with pytest.raises(ConnectionError, match="401"):
            asyncio.run(episode(wrong))


def test_gymnasium(service: Service) -> None:
    pytest.importorskip("gymnasium", reason="needs gymnasium: pip install gymnasium")
    from gymnasium.utils.env_checker import check_env

    from planish.serve.environment import ServiceEnvironment

    url = f"http://127.0.0.1:{service.port}"
    environment = ServiceEnvironment(url, TOKENS["other"], actions=8)
    check_env(environment, skip_render_check=True)
    observation, info = environment.reset(seed=1)
    assert observation.tolist() == pytest.approx([0.0, 0.0], abs=1.0)
    assert info["action_mask"].sum() == len(info["next_steps"]) > 0
    _, reward, ended, truncated, after = environment.step(np.int64(0))
    assert after["steps"] == [info["next_steps"][0]]
    assert (math.isfinite(reward), ended, truncated) == (True, False, False)
    with pytest.raises(PlanishError, match="refuses: Send"):
        ServiceEnvironment(url, "guess").reset()
