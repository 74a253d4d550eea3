"""The almanac_ methods with web3.py: a job is made through the registry, time passes, and the node tells the rest."""

import json
from datetime import datetime, timezone

import rlp
from eth_account import Account
from eth_account.messages import encode_typed_data
from web3 import HTTPProvider, Web3

from check import ALICE_KEY, artifact, check, equal, finish, is_almanac, pass_until, root, sign_locally, url, wait_first

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


DOMAIN = [("name", "string"), ("version", "string"), ("chainId", "uint256"), ("verifyingContract", "address")]
TYPES = {
    "EIP712Domain": [*DOMAIN, ("salt", "bytes32")],
    "Transaction": [
        ("sender", "address"),
        ("kind", "uint8"),
        ("nonce", "uint64"),
        ("expiration", "uint64"),
        ("creation", "bool"),
        ("calls", "Call[]"),
        ("gasLimit", "uint64"),
        ("maxFeePerGas", "uint128"),
        ("maxPriorityFeePerGas", "uint128"),
        ("feePayer", "address"),
    ],
    "Call": [("to", "address"), ("value", "uint256"), ("data", "bytes")],
}


def typed(salt, primary, message, **more):
    """Typed data of specs/native-transaction.md as wallets get it."""
    named = {
        name: [{"name": field, "type": word} for field, word in fields] for name, fields in (TYPES | more).items()
    }
    domain = {"name": "Almanac", "version": "1", "chainId": 31337, "salt": salt}
    domain["verifyingContract"] = "0x000000000000000000000000000000000000a104"
    return {"types": named, "primaryType": primary, "domain": domain, "message": message}


def digest(*args, **more):
    signable = encode_typed_data(full_message=typed(*args, **more))
    return Web3.keccak(b"\x19" + signable.version + signable.header + signable.body).to_0x_hex()


def fields_of(encoded):
    """The message of an encoded transaction."""
    _, sender, kind, nonce, expiration, tip, cap, gas, calls, payer, _, _ = rlp.decode(encoded[1:])
    number = lambda given: int.from_bytes(given, "big")
    address = lambda given: Web3.to_checksum_address(given or bytes(20))
    return {
        "sender": address(sender),
        "kind": number(kind),
        "nonce": number(nonce),
        "expiration": number(expiration),
        "creation": calls[0][0] == b"",
        "calls": [{"to": address(to), "value": number(value), "data": data} for to, value, data in calls],
        "gasLimit": number(gas),
        "maxFeePerGas": number(cap),
        "maxPriorityFeePerGas": number(tip),
        "feePayer": address(payer),
    }


def native_digests():
    vectors = json.loads((root / "specs/vectors/encodings.json").read_text())
    salt = b"\x60" * 32
    for name in ["sequence", "orderless", "creation", "paid"]:
        message = fields_of(bytes.fromhex(vectors[f"native.{name}"][2:]))
        equal(digest(salt, "Transaction", message), vectors[f"native.{name}.signing_hash"])
        paying = digest(salt, "PayFee", {"transaction": message}, PayFee=[("transaction", "Transaction")])
        equal(paying, vectors[f"native.{name}.fee_payer_signing_hash"])


def native_transaction():
    alice = Account.from_key(ALICE_KEY)
    zero = "0x" + "00" * 20
    (chain_id, block, tip) = (31337, w3.eth.get_block("pending"), 1)
    call = {"to": "0x" + "11" * 20, "value": 9, "data": b""}
    message = {
        "sender": alice.address,
        "kind": 1,
        "nonce": 2**63,
        "expiration": block.timestamp + 40,
        "creation": False,
        "calls": [call],
        "gasLimit": 100_000,
        "maxFeePerGas": 5_000_000_000,
        "maxPriorityFeePerGas": tip,
        "feePayer": zero,
    }
    salt = w3.eth.get_block(0).hash
    signed = alice.sign_typed_data(full_message=typed(salt, "Transaction", message))
    signature = signed.r.to_bytes(32, "big") + signed.s.to_bytes(32, "big") + bytes([signed.v - 27])
    plain = lambda given: given.to_bytes((given.bit_length() + 7) // 8, "big")
    numbers = [plain(message[name]) for name in ["kind", "nonce", "expiration"]]
    fees = [plain(message[name]) for name in ["maxPriorityFeePerGas", "maxFeePerGas", "gasLimit"]]
    calls = [[bytes.fromhex(call["to"][2:]), plain(call["value"]), call["data"]]]
    sender = bytes.fromhex(alice.address[2:])
    encoded = b"\x72" + rlp.encode([plain(chain_id), sender, *numbers, *fees, calls, b"", [signature], []])
    receipt = included(w3.eth.send_raw_transaction(encoded))
    equal((receipt.type, receipt["almanacType"]), (2, "0x72"))
    block = w3.eth.get_block(receipt.blockNumber, full_transactions=True)
    (found,) = [one for one in block.transactions if one.hash == receipt.transactionHash]
    equal((found["from"], found.value, found["almanacType"]), (alice.address, 9, "0x72"))
    equal(w3.eth.get_block("pending").get("hash"), None)


CHECKS = {
    "the digests of native transactions are those of eth-account": native_digests,
    "web3.py reads a native transaction that eth-account signed": native_transaction,
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
