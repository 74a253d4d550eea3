"""REST at /v1: real answers against the OpenAPI document, then schemathesis against the whole document."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

from check import check, equal, finish, is_almanac, url

ALICE = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
# Bounds the suite to some 10 s.
EXAMPLES_MAX = 20
SEED = 18

if not is_almanac:
    print("skip REST")
    finish()

import schemathesis  # noqa: E402

document = schemathesis.openapi.from_url(f"{url}/v1/openapi.json")


def rpc(method, *params):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    answer = json.load(urllib.request.urlopen(request))
    assert "error" not in answer, answer
    return answer["result"]


def answered(path, status=200, **places):
    """A real answer, which the document describes."""
    query = places.pop("query", {})
    case = document[path]["GET"].Case(path_parameters=places, query=query)
    response = case.call(base_url=url)
    equal(response.status_code, status)
    case.validate_response(response)
    return response.json()


# Something of everything: a transfer, a contract call with a log, a job.
transfer = rpc("eth_sendTransaction", {"from": ALICE, "to": "0x" + "07" * 20, "value": "0x1"})
order = json.loads((Path(os.environ["CLIENT_TEST_ROOT"]) / "contracts/artifacts/ICronRegistry.json").read_text())


@check("answers are as the document says")
def _():
    summaries = answered("/v1/accounts/{address}/transaction_summaries", address=ALICE)
    equal([one["transaction_hash"] for one in summaries], [transfer])
    equal(summaries[0]["replay_protector"], {"SequenceNumber": "0"})
    found = answered("/v1/transactions/by_hash/{hash}", hash=transfer)
    equal((found["status"], found["version"]), ("committed", summaries[0]["version"]))
    equal(found["transaction"], rpc("eth_getTransactionByHash", transfer))
    account = answered("/v1/accounts/{address}", address=ALICE)
    equal((account["sequence_number"], account["rotation"], account["stateless"]), ("1", "0", False))
    equal(account["balance"], str(int(rpc("eth_getBalance", ALICE, "latest"), 16)))


@check("what is not there is not found")
def _():
    answered("/v1/transactions/by_hash/{hash}", status=404, hash="0x" + "11" * 32)
    answered("/v1/schedules/{id}", status=404, id="99-1-0")


@check("schedules and the agenda")
def _():
    from web3 import Web3

    w3 = Web3(Web3.HTTPProvider(url))
    registry = w3.eth.contract(address="0x" + "00" * 19 + "06", abi=order["abi"])
    start = w3.eth.get_block("latest").timestamp + 1_000
    job = registry.functions.scheduleCalldata(ALICE, bytes.fromhex("d09de08a"), start, 60, 3, 50_000)
    w3.eth.wait_for_transaction_receipt(job.transact({"from": ALICE, "value": 10**17}))
    (listed,) = answered("/v1/schedules", query={"owner": ALICE, "status": "pending"})["schedules"]
    equal(answered("/v1/schedules/{id}", id=listed["id"]), listed)
    (entry,) = answered("/v1/agenda", query={"lanes": "cron", "limit": 5})["entries"]
    equal(entry["id"], listed["id"])


@check("schemathesis finds no failure")
def _():
    program = Path(sys.executable).with_name("schemathesis")
    command = [program, "run", f"{url}/v1/openapi.json", "--checks", "all", "--phases", "examples,coverage,fuzzing"]
    # A cursor, a transaction and a span are of the right form and still refused: only the chain can tell.
    command += ["--exclude-checks", "positive_data_acceptance"]
    command += ["--max-examples", str(EXAMPLES_MAX), "--seed", str(SEED), "--generation-database", "none", "--no-color"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=90)
    print(run.stdout, run.stderr, file=sys.stderr)
    assert run.returncode == 0, "; ".join(line for line in run.stdout.splitlines() if line.startswith("- "))
    # It answers 0 also where it has nothing to try.
    tried = re.search(r"(\d+) generated, (\d+) passed", run.stdout)
    assert tried and tried[1] == tried[2] and int(tried[1]) >= 300, tried and tried[0]


finish()
