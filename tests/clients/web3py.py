"""web3.py: strict about the types in answers, and the client of most scripts and indexers."""

import asyncio
import time

from eth_account import Account
from eth_account.messages import encode_defunct
from web3 import AsyncWeb3, HTTPProvider, Web3, WebSocketProvider
from web3.exceptions import BlockNotFound, ContractCustomError, ContractLogicError, ContractPanicError, TransactionNotFound
from web3.middleware import SignAndSendRawMiddlewareBuilder

from check import artifact, check, equal, finish, is_almanac, url, ws_url

KEYS = [
    "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
]
alice, bob = (Account.from_key(key) for key in KEYS)
counter_file = artifact("Counter")

# The nodes' accounts sign for this one, our own keys for the other.
w3 = Web3(HTTPProvider(url))
signing = Web3(HTTPProvider(url))
signing.middleware_onion.inject(SignAndSendRawMiddlewareBuilder.build(alice), layer=0)
signing.eth.default_account = alice.address
counter = None


def included(transaction_hash):
    return w3.eth.wait_for_transaction_receipt(transaction_hash, timeout=10, poll_latency=0.02)


@check("is_connected, chain_id, client_version")
def _():
    assert w3.is_connected()
    equal(w3.eth.chain_id, 31337)
    assert w3.client_version.split("/")[0] in ("almanac", "anvil"), w3.client_version
    equal(w3.eth.block_number, 0)


@check("the genesis block has every field that web3.py formats")
def _():
    block = w3.eth.get_block(0, full_transactions=True)
    equal(block.number, 0)
    equal(block.transactions, [])
    for field in ("hash", "parentHash", "stateRoot", "receiptsRoot", "logsBloom", "baseFeePerGas", "gasLimit", "timestamp"):
        assert field in block, field
    equal(len(block.hash), 32)
    # web3.py leaves fields alone that Ethereum's specification does not have.
    if is_almanac:
        equal(int(block.timestampMs, 16) // 1_000, block.timestamp)


@check("deploys, signed by middleware")
def _():
    global counter
    factory = signing.eth.contract(abi=counter_file["abi"], bytecode=counter_file["bytecode"])
    receipt = included(factory.constructor(1000).transact())
    equal(receipt.status, 1)
    counter = signing.eth.contract(address=receipt.contractAddress, abi=counter_file["abi"])
    equal(counter.functions.limit().call(), 1000)
    equal(counter.functions.owner().call(), alice.address)


@check("transact, event of the receipt, call in the past")
def _():
    receipt = included(counter.functions.increase(5).transact())
    (event,) = counter.events.Increased().process_receipt(receipt)
    equal(dict(event.args), {"by": alice.address, "step": 5, "value": 5})
    equal(counter.functions.value().call(), 5)
    equal(counter.functions.value().call(block_identifier=receipt.blockNumber - 1), 0)
    equal(receipt.type, 2)


@check("custom error, reason and panic")
def _():
    for make, kind, words in (
        (counter.functions.increase(5000), ContractCustomError, "0x"),
        (counter.functions.refuse("not today"), ContractLogicError, "not today"),
        (counter.functions.fail(), ContractPanicError, "0x01"),
    ):
        try:
            make.call()
        except kind as error:
            assert words in str(error) or words in str(error.data), error
        else:
            raise AssertionError(f"{make} did not revert")


@check("build, sign and send a raw transaction")
def _():
    before = w3.eth.get_balance(bob.address)
    transaction = {
        "to": bob.address,
        "value": 7,
        "gas": 21_000,
        "nonce": w3.eth.get_transaction_count(alice.address),
        "chainId": w3.eth.chain_id,
        "maxPriorityFeePerGas": w3.eth.max_priority_fee,
        "maxFeePerGas": 2 * w3.eth.gas_price + w3.eth.max_priority_fee,
    }
    signed = alice.sign_transaction(transaction)
    transaction_hash = w3.eth.send_raw_transaction(signed.raw_transaction)
    equal(transaction_hash, signed.hash)
    receipt = included(transaction_hash)
    equal(receipt.status, 1)
    equal(receipt.gasUsed, 21_000)
    equal(w3.eth.get_balance(bob.address), before + 7)
    equal(w3.eth.get_raw_transaction(transaction_hash), signed.raw_transaction)


@check("every block with its transactions formats, of whatever type they are")
def _():
    for number in range(w3.eth.block_number + 1):
        block = w3.eth.get_block(number, full_transactions=True)
        for transaction in block.transactions:
            equal(transaction.blockNumber, number)
            equal(w3.eth.get_transaction(transaction.hash).hash, transaction.hash)
            equal(w3.eth.get_transaction_receipt(transaction.hash).transactionIndex, transaction.transactionIndex)
        equal(w3.eth.get_block(block.hash).number, number)
        equal(w3.eth.get_block_transaction_count(number), len(block.transactions))


@check("block receipts are those of its transactions")
def _():
    number = w3.eth.block_number
    receipts = w3.eth.get_block_receipts(number)
    block = w3.eth.get_block(number)
    equal([receipt.transactionHash for receipt in receipts], list(block.transactions))


@check("get_logs by argument")
def _():
    logs = counter.events.Increased().get_logs(from_block=0, argument_filters={"by": alice.address})
    equal([log.args.step for log in logs], [5])
    equal(counter.events.Increased().get_logs(from_block=0, argument_filters={"by": bob.address}), [])


@check("filters of logs, blocks and pending transactions")
def _():
    events = counter.events.Increased().create_filter(from_block="latest")
    blocks = w3.eth.filter("latest")
    pending = w3.eth.filter("pending")
    first = events.get_new_entries()
    assert all(entry.blockNumber <= w3.eth.block_number for entry in first), first
    receipt = included(counter.functions.increase(6).transact())
    equal([entry.args.step for entry in events.get_new_entries()], [6])
    equal(blocks.get_new_entries(), [receipt.blockHash])
    equal(pending.get_new_entries(), [receipt.transactionHash])
    equal(events.get_new_entries(), [])
    equal([entry.args.step for entry in events.get_all_entries()][-1], 6)
    assert w3.eth.uninstall_filter(blocks.filter_id)
    assert not w3.eth.uninstall_filter(blocks.filter_id)


@check("fee_history")
def _():
    history = w3.eth.fee_history(2, "latest", [10, 90])
    equal(len(history.baseFeePerGas), 3)
    equal([len(rewards) for rewards in history.reward], [2, 2])
    assert all(0 <= ratio <= 1 for ratio in history.gasUsedRatio)


@check("accounts of the node")
def _():
    equal(len(w3.eth.accounts), 10)
    equal(w3.eth.accounts[0], alice.address)
    receipt = included(w3.eth.send_transaction({"from": w3.eth.accounts[2], "to": bob.address, "value": 1}))
    equal(receipt["from"], w3.eth.accounts[2])
    signature = w3.eth.sign(w3.eth.accounts[2], text="hello")
    equal(Account.recover_message(encode_defunct(text="hello"), signature=signature), w3.eth.accounts[2])


@check("estimate_gas, create_access_list, get_storage_at, get_code")
def _():
    equal(w3.eth.estimate_gas({"from": alice.address, "to": bob.address, "value": 1}), 21_000)
    call = {"from": alice.address, "to": counter.address, "data": counter.encode_abi("increase", [1])}
    listed = w3.eth.create_access_list(call)
    assert any(entry.address == counter.address for entry in listed.accessList), listed
    equal(int.from_bytes(w3.eth.get_storage_at(counter.address, 0), "big"), counter.functions.value().call())
    equal(2 * len(w3.eth.get_code(counter.address)) + 2, len(counter_file["deployedBytecode"]))


@check("call with state override")
def _():
    nobody = "0x00000000000000000000000000000000000000AA"
    result = w3.eth.call({"to": nobody}, "latest", {nobody: {"code": "0x475f5260205ff3", "balance": hex(77)}})
    equal(int.from_bytes(result, "big"), 77)


@check("simulate_v1")
def _():
    payload = {
        "blockStateCalls": [
            {"calls": [{"from": alice.address, "to": counter.address, "data": counter.encode_abi("increase", [3])}]}
        ],
        "validation": False,
    }
    (block,) = w3.eth.simulate_v1(payload, "latest")
    equal(block.calls[0].status, 1)
    equal(int.from_bytes(block.calls[0].returnData, "big"), counter.functions.value().call() + 3)


@check("what does not exist")
def _():
    for ask, kind in (
        (lambda: w3.eth.get_transaction(b"\1" * 32), TransactionNotFound),
        (lambda: w3.eth.get_transaction_receipt(b"\1" * 32), TransactionNotFound),
        (lambda: w3.eth.get_block(10**9), BlockNotFound),
        (lambda: w3.eth.get_block(b"\1" * 32), BlockNotFound),
    ):
        try:
            ask()
        except kind:
            continue
        raise AssertionError(kind.__name__)


@check("a batch of requests")
def _():
    with w3.batch_requests() as batch:
        batch.add(w3.eth.get_block(0))
        batch.add(w3.eth.get_balance(bob.address))
        batch.add(w3.eth.contract(address=counter.address, abi=counter.abi).functions.limit())
        block, balance, limit = batch.execute()
    equal(block.number, 0)
    equal(balance, w3.eth.get_balance(bob.address))
    equal(limit, 1000)


@check("subscriptions over a WebSocket")
def _():
    async def listen():
        async with AsyncWeb3(WebSocketProvider(ws_url)) as socket:
            equal(await socket.eth.chain_id, 31337)
            heads = await socket.eth.subscribe("newHeads")
            logs = await socket.eth.subscribe("logs", {"address": counter.address})
            receipt = included(counter.functions.increase(9).transact())
            heard = {}
            async for message in socket.socket.process_subscriptions():
                heard[message["subscription"]] = message["result"]
                if len(heard) == 2:
                    break
            equal(heard[heads]["hash"], receipt.blockHash)
            if is_almanac:
                equal(int(heard[heads]["timestampMs"], 16) // 1_000, heard[heads]["timestamp"])
            equal(heard[logs]["transactionHash"], receipt.transactionHash)
            assert await socket.eth.unsubscribe(heads)

    asyncio.run(asyncio.wait_for(listen(), 20))


@check("time travel through the provider")
def _():
    before = w3.eth.get_block("latest").timestamp
    w3.provider.make_request("evm_increaseTime", [86_400])
    w3.provider.make_request("evm_mine", [])
    passed = w3.eth.get_block("latest").timestamp - before
    assert 86_400 <= passed < 86_460, passed
    assert w3.eth.get_block("latest").timestamp > time.time() + 86_000


finish()
