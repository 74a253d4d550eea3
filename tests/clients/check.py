"""What the Python suite needs: checks that print a line, as check.mjs does."""

import json
import os
import sys
import time
import traceback
from pathlib import Path

from eth_account import Account
from web3.middleware import SignAndSendRawMiddlewareBuilder

url = os.environ["CLIENT_TEST_URL"]
ws_url = url.replace("http", "ws")
is_network = os.environ["CLIENT_TEST_NODE"] == "network"
is_almanac = is_network or os.environ["CLIENT_TEST_NODE"] == "almanac"
root = Path(os.environ["CLIENT_TEST_ROOT"])
failed = 0
# Seconds until a job's first run. On a network they really have to pass.
wait_first = 8 if is_network else 100
ALICE_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"


def check(name):
    """Runs the function below it at once and prints its line."""

    def run(body):
        global failed
        try:
            body()
            print(f"ok {name}", flush=True)
        except Exception as error:
            failed += 1
            reason = " | ".join(f"{type(error).__name__} {error}".split("\n"))[:300]
            print(f"not ok {name}: {reason}", flush=True)
            print(f"--- {name}\n{traceback.format_exc()}", file=sys.stderr)
        return body

    return run


def equal(actual, expected):
    assert actual == expected, f"{actual!r} is not {expected!r}"


def sign_locally(w3):
    """Signs for the first account here: a network's node holds nobody's keys."""
    account = Account.from_key(ALICE_KEY)
    w3.middleware_onion.inject(SignAndSendRawMiddlewareBuilder.build(account), layer=0)
    w3.eth.default_account = account.address


def pass_until(w3, second):
    """Lets time pass until the chain's is `second`: the clock's own, or on a developer's chain in a moment."""
    now = w3.eth.get_block("latest").timestamp
    if not is_network:
        w3.provider.make_request("almanac_increaseTime", [second - now])
    end = time.monotonic() + second - now + 10
    while w3.eth.get_block("latest").timestamp < second:
        assert time.monotonic() < end, f"second {second} does not come"
        time.sleep(0.05)


def artifact(name):
    return json.loads((root / "contracts/artifacts" / f"{name}.json").read_text())


def finish():
    print("done", flush=True)
    sys.exit(0 if failed == 0 else 1)
