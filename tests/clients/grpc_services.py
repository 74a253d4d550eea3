"""gRPC with Python's grpcio: services and messages come from server reflection, nothing is generated."""

import json
import os
import urllib.request

import grpc
from eth_account import Account
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from web3 import HTTPProvider, Web3

from check import ALICE_KEY, check, equal, finish, is_almanac, sign_locally, url

if not is_almanac:
    print("skip gRPC")
    finish()

SERVICE = Web3.to_checksum_address("0x000000000000000000000000000000000000a103")
BOB = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
BOB_KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
w3 = Web3(HTTPProvider(url))
alice = Account.from_key(ALICE_KEY)
bob = Account.from_key(BOB_KEY)
sign_locally(w3)
channel = grpc.insecure_channel(os.environ["CLIENT_TEST_GRPC"])
reflection = ProtoReflectionDescriptorDatabase(channel)
pool = DescriptorPool(reflection)


def message(name):
    return GetMessageClass(pool.FindMessageTypeByName(f"almanac.{name}"))


def call(service, name, request, **options):
    method = pool.FindServiceByName(f"almanac.{service}").FindMethodByName(name)
    answer = GetMessageClass(method.output_type)
    path = f"/almanac.{service}/{name}"
    ask = channel.unary_unary(path, request_serializer=type(request).SerializeToString, response_deserializer=answer.FromString)
    return ask(request, timeout=options.get("timeout", 20))


def refused(code, words, *args):
    try:
        answer = call(*args)
    except grpc.RpcError as error:
        equal(error.code(), code)
        assert words in error.details(), error.details()
        return
    raise AssertionError(f"it was answered: {answer}")


def rpc(method, *params):
    answer = w3.provider.make_request(method, list(params))
    assert "error" not in answer, answer
    return answer["result"]


def code_of(number):
    return pool.FindEnumTypeByName("almanac.ResponseCodeEnum").values_by_number[number].name


def query(hash):
    return message("TransactionGetRecordQuery")(transactionHash=hash)


@check("reflection lists the services")
def _():
    services = set(reflection.get_services())
    assert {"almanac.ScheduleService", "almanac.RecordService", "grpc.health.v1.Health"} <= services, services
    methods = pool.FindServiceByName("almanac.ScheduleService").methods_by_name
    equal(sorted(methods), ["createSchedule", "deleteSchedule", "getScheduleInfo", "signSchedule"])


@check("health answers")
def _():
    health = health_pb2_grpc.HealthStub(channel)
    for service in ["", "almanac.ScheduleService", "almanac.RecordService"]:
        answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=20)
        equal(answer.status, health_pb2.HealthCheckResponse.SERVING)


@check("a record is that of JSON-RPC and REST")
def _():
    sent = w3.eth.send_transaction({"to": BOB, "value": 7})
    w3.eth.wait_for_transaction_receipt(sent, timeout=10, poll_latency=0.02)
    record = call("RecordService", "getRecord", query(bytes(sent)))
    expected = rpc("almanac_getRecord", sent.to_0x_hex())
    equal(json.load(urllib.request.urlopen(f"{url}/v1/records/{sent.to_0x_hex()}")), expected)
    equal(code_of(record.receipt.status), expected["receipt"]["status"])
    time = expected["consensusTimestamp"]
    equal((record.consensusTimestamp.seconds, record.consensusTimestamp.nanos), (int(time["seconds"]), time["nanos"]))
    equal(record.transactionID.accountID.address, bytes.fromhex(alice.address[2:]))
    equal(record.transactionFee, expected["transactionFee"])
    amounts = {"0x" + one.accountID.address.hex(): one.amount for one in record.transferList.accountAmounts}
    equal(amounts, {one["accountID"]: one["amount"] for one in expected["transferList"]})
    equal(amounts[BOB.lower()], "7")


def transact(request, name, signer, nonce, **changes):
    """Asks what to sign for a body, signs a transaction with it, and submits it."""
    calldata = call("ScheduleService", name, request).calldata
    fees = {"maxFeePerGas": 5_000_000_000, "maxPriorityFeePerGas": 1, "gas": 800_000, "chainId": w3.eth.chain_id}
    signed = signer.sign_transaction({"to": SERVICE, "data": calldata, "nonce": nonce, "value": 0, **fees, **changes})
    submitted = type(request)()
    submitted.CopyFrom(request)
    submitted.signedTransactionBytes = bytes(signed.raw_transaction)
    equal(code_of(call("ScheduleService", name, submitted).nodeTransactionPrecheckCode), "OK")
    receipt = w3.eth.wait_for_transaction_receipt(signed.hash, timeout=10, poll_latency=0.02)
    equal(receipt.status, 1)
    return receipt


@check("a signed schedule leaves its records")
def _():
    heir = "0x00000000000000000000000000000000000000d7"
    types = ["((address,address,uint256,bytes)[],uint64,uint256,string,uint32,uint64,bool)"]
    body = ([(bob.address, heir, 5, b"")], 60_000, 10**12, "rent", 77, 0, False)
    create = message("Transaction")()
    create.scheduleCreate.transactionBody = w3.codec.encode(types, [body])
    nonce = lambda account: w3.eth.get_transaction_count(account.address)
    created = [transact(create, "createSchedule", alice, nonce(alice)) for _ in range(2)]
    records = [call("RecordService", "getRecord", query(bytes(one.transactionHash))) for one in created]
    first, same = (record.receipt.scheduleID.scheduleNum for record in records)
    assert first > 0
    equal(same, first)
    sign = message("Transaction")()
    sign.scheduleSign.scheduleID.scheduleNum = first
    trigger = transact(sign, "signSchedule", bob, nonce(bob))
    hashes = w3.eth.get_block(trigger.blockNumber).transactions
    run_hash = hashes[hashes.index(trigger.transactionHash) + 1]
    signing, run = (call("RecordService", "getRecord", query(bytes(one))) for one in [trigger.transactionHash, run_hash])
    equal(run.consensusTimestamp.nanos - signing.consensusTimestamp.nanos, 1)
    equal((code_of(run.receipt.status), run.memo, run.scheduleRef.scheduleNum), ("SUCCESS", "rent", first))
    equal(signing.HasField("scheduleRef"), False)
    inherited = run.transactionID
    equal((inherited.scheduled, inherited.nonce, inherited.accountID.address), (True, 77, bytes.fromhex(alice.address[2:])))
    equal(inherited.transactionValidStart, records[0].consensusTimestamp)
    amounts = {one.accountID.address: int(one.amount) for one in run.transferList.accountAmounts}
    paid, given = (bytes.fromhex(one.address[2:]) for one in [alice, bob])
    equal(amounts, {paid: -int(run.transactionFee), given: -5, bytes.fromhex(heir[2:]): 5})


@check("wrong questions have a status and words")
def _():
    refused(grpc.StatusCode.NOT_FOUND, "knows no", "RecordService", "getRecord", query(bytes([0x11] * 32)))
    refused(grpc.StatusCode.INVALID_ARGUMENT, "31 bytes", "RecordService", "getRecord", query(bytes(31)))
    large = message("Transaction")(signedTransactionBytes=bytes(600_000))
    refused(grpc.StatusCode.OUT_OF_RANGE, "524288", "ScheduleService", "signSchedule", large)


@check("the answer to a body is the calldata of the contract")
def _():
    request = message("Transaction")()
    request.scheduleSign.scheduleID.scheduleNum = 9
    answer = call("ScheduleService", "signSchedule", request)
    equal(code_of(answer.nodeTransactionPrecheckCode), "OK")
    expected = Web3.keccak(text="signSchedule(uint64,(bytes,bytes,uint64)[])")[:4]
    expected += w3.codec.encode(["uint64", "(bytes,bytes,uint64)[]"], [9, []])
    equal(answer.calldata, expected)


def without_signature(request):
    plain = type(request)()
    plain.CopyFrom(request)
    plain.ClearField("signedTransactionBytes")
    return plain


@check("what is signed must be what body says")
def _():
    request = message("Transaction")()
    request.scheduleSign.scheduleID.scheduleNum = 9
    fees = {"maxFeePerGas": 5_000_000_000, "maxPriorityFeePerGas": 1, "gas": 200_000, "chainId": w3.eth.chain_id}
    nonce = w3.eth.get_transaction_count(alice.address)
    other = alice.sign_transaction({"to": SERVICE, "data": "0x1234", "nonce": nonce, "value": 0, **fees})
    request.signedTransactionBytes = bytes(other.raw_transaction)
    refused(grpc.StatusCode.INVALID_ARGUMENT, "other calldata", "ScheduleService", "signSchedule", request)
    calldata = call("ScheduleService", "signSchedule", without_signature(request)).calldata
    right = alice.sign_transaction({"to": SERVICE, "data": calldata, "nonce": nonce, "value": 0, **fees})
    request.signedTransactionBytes = bytes(right.raw_transaction)
    answer = call("ScheduleService", "signSchedule", request)
    equal((code_of(answer.nodeTransactionPrecheckCode), answer.transactionHash), ("OK", bytes(right.hash)))
    receipt = w3.eth.wait_for_transaction_receipt(right.hash, timeout=10, poll_latency=0.02)
    equal(receipt.status, 0)
    record = call("RecordService", "getRecord", query(bytes(right.hash)))
    assert code_of(record.receipt.status).startswith("CONTRACT_"), record


finish()
