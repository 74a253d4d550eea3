"""What the Python suite needs: checks that print a line, as check.mjs does."""

import json
import os
import sys
import traceback
from pathlib import Path

url = os.environ["CLIENT_TEST_URL"]
ws_url = url.replace("http", "ws")
is_almanac = os.environ["CLIENT_TEST_NODE"] == "almanac"
root = Path(os.environ["CLIENT_TEST_ROOT"])
failed = 0


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


def artifact(name):
    return json.loads((root / "contracts/artifacts" / f"{name}.json").read_text())


def finish():
    print("done", flush=True)
    sys.exit(0 if failed == 0 else 1)
