"""A year of token subscriptions with web3.py: the chain charges them itself, and time travel brings the months."""

from web3 import HTTPProvider, Web3

from check import artifact, check, equal, finish, is_almanac, url

CRON = "0x0000000000000000000000000000000000000006"
MONTH = 30 * 86_400
PRICE = 25

w3 = Web3(HTTPProvider(url))


def included(transaction_hash):
    receipt = w3.eth.wait_for_transaction_receipt(transaction_hash, timeout=10, poll_latency=0.02)
    equal(receipt.status, 1)
    return receipt


def deploy(name, *args):
    file = artifact(name)
    factory = w3.eth.contract(abi=file["abi"], bytecode=file["bytecode"])
    receipt = included(factory.constructor(*args).transact())
    return w3.eth.contract(address=receipt.contractAddress, abi=file["abi"])


def month():
    """Lets a month pass, and gives what the subscriptions said on the way, with the runs that said it."""
    first = w3.eth.block_number + 1
    travel = w3.provider.make_request("almanac_increaseTime", [MONTH])["result"]
    if not travel["blocks"]:
        return 0, []
    failures = subscriptions.events.SubscriptionFailed().get_logs(from_block=first)
    said = [(log.transactionHash, log.args.reason) for log in failures]
    for log in subscriptions.events.SubscriptionCharged().get_logs(from_block=first):
        equal(log.args.amount, PRICE)
        said.append((log.transactionHash, f"charged, {log.args.chargesLeft} left"))
    return int(travel["runs"], 16), said


def a_year():
    included(token.functions.approve(subscriptions.address, 4 * PRICE).transact())
    order = subscriptions.functions.approveSubscription(token.address, merchant, PRICE, MONTH, 10)
    receipt = included(order.transact({"value": w3.to_wei("0.1", "ether")}))
    (approved,) = subscriptions.events.SubscriptionApproved().process_receipt(receipt)
    identifier = approved.args.id
    before = w3.eth.get_balance(customer)

    year = []
    for n in range(1, 13):
        runs, said = month()
        equal((runs, len(said)), (1, 1))
        run, text = said[0]
        year.append(text)
        equal(w3.eth.get_transaction(run)["from"], CRON)
        equal(w3.eth.get_transaction_receipt(run).status, 1)
        if n == 5:
            shown = subscriptions.functions.getSubscription(identifier).call()
            assert "allowance too low" in shown, shown
        if n == 6:
            approval = included(token.functions.approve(subscriptions.address, 6 * PRICE).transact())
            before -= approval.gasUsed * approval.effectiveGasPrice

    charged = [f"charged, {left} left" for left in range(9, -1, -1)]
    equal(year, charged[:4] + ["allowance too low"] * 2 + charged[4:])
    equal(token.functions.balanceOf(merchant).call(), 10 * PRICE)
    back = w3.eth.get_balance(customer) - before
    assert w3.to_wei("0.09", "ether") < back < w3.to_wei("0.1", "ether"), f"the last charge gave back {back}"
    equal(month(), (0, []))


if is_almanac:
    customer, merchant = w3.eth.accounts[0], w3.eth.accounts[2]
    w3.eth.default_account = customer
    subscriptions = deploy("Subscriptions")
    token = deploy("PlainToken", 10**9)
    check("a year of months; the allowance runs out and is topped up")(a_year)
else:
    print("skip a year of months; the allowance runs out and is topped up")
finish()
