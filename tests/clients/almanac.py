"""The almanac_ methods with web3.py: a job is made through the registry, time passes, and the node tells the rest."""

from datetime import datetime, timezone

from web3 import HTTPProvider, Web3

from check import artifact, check, equal, finish, is_almanac, pass_until, sign_locally, url, wait_first

CRON = "0x0000000000000000000000000000000000000006"
WORDS = ["address", "bytes", "uint256", "uint256", "uint256", "uint256"]
NAMES = ["target", "data", "nextRunAt", "intervalSec", "maxRuns", "gasLimit"]
ABI = [
    {
        "type": "function",
        "name": "scheduleCalldata",
        "stateMutability": "payable",
        "inputs": [{"name": name, "type": word} for name, word in zip(NAMES, WORDS)],
        "outputs": [{"name": "id", "type": "uint256"}],
    }
]

w3 = Web3(HTTPProvider(url))


def ask(method, *params):
    answer = w3.provider.make_request(method, list(params))
    assert "error" not in answer, answer
    return answer["result"]


def included(transaction_hash):
    receipt = w3.eth.wait_for_transaction_receipt(transaction_hash, timeout=10, poll_latency=0.02)
    equal(receipt.status, 1)
    return receipt


def a_single_run():
    file = artifact("Counter")
    factory = w3.eth.contract(abi=file["abi"], bytecode=file["bytecode"])
    address = included(factory.constructor(100).transact()).contractAddress
    counter = w3.eth.contract(address=address, abi=file["abi"])
    registry = w3.eth.contract(address=CRON, abi=ABI)
    due = w3.eth.get_block("latest").timestamp + wait_first
    order = registry.functions.scheduleCalldata(address, counter.encode_abi("increase", [7]), due, 0, 0, 100_000)
    receipt = included(order.transact({"value": w3.to_wei("0.01", "ether")}))
    number = receipt.logs[0].topics[1].to_0x_hex()

    schedule = ask("almanac_getSchedule", hex(int(number, 16)))
    equal(int(schedule["idNumber"], 16), int(number, 16))
    equal((schedule["status"], schedule["terms"]["door"]), ("pending", "cron"))
    equal(datetime.fromisoformat(schedule["nextRun"]["iso"]), datetime.fromtimestamp(due, timezone.utc))
    (foreseen,) = ask("almanac_preview", schedule["id"])["runs"]
    equal(foreseen["success"], True)
    equal(counter.functions.value().call(), 0)

    pass_until(w3, due)
    equal(counter.functions.value().call(), 7)
    (run,) = ask("almanac_getRuns", schedule["id"])["runs"]
    equal(run["receipt"]["gasUsed"], foreseen["gasUsed"])
    found = w3.eth.get_transaction(run["receipt"]["transactionHash"])
    equal((found["from"], found["to"]), (CRON, address))
    ended = ask("almanac_getSchedule", schedule["id"])
    equal((ended["status"], ended["escrow"], ended["runsFailed"]), ("succeeded", "0x0", "0x0"))
    equal(ask("almanac_agenda")["entries"], [])


def parameters():
    by_name = {one["name"]: one for one in ask("almanac_getParameters")}
    budget = by_name["cron_block_gas_max"]
    equal(int(budget["value"], 16), 15_000_000)
    assert int(budget["min"], 16) <= 15_000_000 <= int(budget["max"], 16), budget


CHECKS = {
    "a single run is foreseen, happens and is remembered": a_single_run,
    "parameters come with their bounds": parameters,
}
if is_almanac:
    sign_locally(w3)
for name, body in CHECKS.items():
    if is_almanac:
        check(name)(body)
    else:
        print(f"skip {name}")
finish()
