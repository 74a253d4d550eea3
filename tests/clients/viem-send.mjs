// viem sends: every type of transaction, who signs it, what it costs, and how it is found again.

import assert from "node:assert/strict";
import {
    BaseError,
    createWalletClient,
    encodeFunctionData,
    http,
    isAddressEqual,
    keccak256,
    parseEther,
    parseGwei,
    toHex,
    verifyMessage,
    verifyTypedData,
} from "viem";
import {
    act,
    alice,
    bob,
    carol,
    common,
    counterData,
    deployCounter,
    included,
    reader,
    wallet,
} from "./accounts-viem.mjs";
import { artifact, check, finish, onlyDeveloper, url } from "./check.mjs";

const delegate = artifact("Delegate");
// An account of the node: the node signs.
const unlocked = createWalletClient({ ...common, account: carol.address, transport: http(url) });
const { address, read: call } = await deployCounter(1000n);

await check("an EIP-1559 transfer pays base fee and tip", async () => {
    const before = await reader.getBalance({ address: alice.address });
    const hash = await wallet.sendTransaction({
        to: carol.address,
        value: 3n,
        maxFeePerGas: parseGwei("50"),
        maxPriorityFeePerGas: parseGwei("2"),
    });
    const receipt = await included(hash);
    const { baseFeePerGas } = await reader.getBlock({ blockNumber: receipt.blockNumber });
    assert.equal(receipt.effectiveGasPrice, baseFeePerGas + parseGwei("2"));
    assert.equal(
        await reader.getBalance({ address: alice.address }),
        before - 3n - 21_000n * receipt.effectiveGasPrice,
    );
    const tx = await reader.getTransaction({ hash });
    assert.equal(tx.type, "eip1559");
    assert.equal(tx.maxPriorityFeePerGas, parseGwei("2"));
    assert.equal(tx.blockHash, receipt.blockHash);
});
await check("an EIP-2930 transaction carries its access list", async () => {
    const accessList = [{ address, storageKeys: [toHex(0, { size: 32 })] }];
    const hash = await wallet.sendTransaction({
        to: address,
        data: counterData("increase", 1n),
        accessList,
        gasPrice: parseGwei("30"),
        type: "eip2930",
    });
    assert.equal((await included(hash)).type, "eip2930");
    const tx = await reader.getTransaction({ hash });
    assert.deepEqual(
        tx.accessList,
        accessList.map((e) => ({ ...e, address: e.address.toLowerCase() })),
    );
    assert.equal(tx.typeHex, "0x1");
});
await check("a legacy transaction", async () => {
    const hash = await wallet.sendTransaction({ to: carol.address, value: 1n, gasPrice: parseGwei("20") });
    assert.equal((await included(hash)).type, "legacy");
    assert.equal((await reader.getTransaction({ hash })).gasPrice, parseGwei("20"));
});
await check("createAccessList", async () => {
    const { accessList, gasUsed } = await reader.createAccessList({
        account: alice.address,
        to: address,
        data: counterData("increase", 1n),
    });
    const own = accessList.find((entry) => entry.address.toLowerCase() === address.toLowerCase());
    assert.ok(own.storageKeys.includes(toHex(0, { size: 32 })));
    assert.ok(gasUsed > 21_000n);
});

await check("EIP-7702 gives an account code for one batch of calls", async () => {
    const deployed = await included(await wallet.deployContract(delegate));
    const own = createWalletClient({ ...common, account: bob, transport: http(url) });
    const authorization = await own.signAuthorization({
        contractAddress: deployed.contractAddress,
        executor: "self",
    });
    const hash = await own.sendTransaction({
        authorizationList: [authorization],
        to: bob.address,
        data: encodeFunctionData({
            abi: delegate.abi,
            functionName: "batch",
            args: [
                [
                    { to: carol.address, value: 7n, data: "0x" },
                    { to: address, value: 0n, data: counterData("increase", 1n) },
                ],
            ],
        }),
    });
    const receipt = await included(hash);
    assert.equal(receipt.status, "success");
    assert.equal(receipt.type, "eip7702");
    assert.equal(
        await reader.getCode({ address: bob.address }),
        `0xef0100${deployed.contractAddress.slice(2).toLowerCase()}`,
    );
    assert.ok(isAddressEqual(await reader.getDelegation({ address: bob.address }), deployed.contractAddress));
    assert.equal(await call("stepsBy", [bob.address]), 1n);
    const tx = await reader.getTransaction({ hash });
    assert.equal(tx.authorizationList.length, 1);
    assert.equal(tx.authorizationList[0].chainId, 31337);
    const [log] = await reader.getContractEvents({
        address: bob.address,
        abi: delegate.abi,
        eventName: "Batched",
        blockHash: receipt.blockHash,
    });
    assert.deepEqual(log.args, { account: bob.address, calls: 2n });
});

await check("sendRawTransactionSync answers with the receipt", async () => {
    const request = await wallet.prepareTransactionRequest({ to: carol.address, value: 1n });
    const serializedTransaction = await wallet.signTransaction(request);
    const receipt = await wallet.sendRawTransactionSync({ serializedTransaction });
    assert.equal(receipt.status, "success");
    assert.equal(receipt.transactionHash, keccak256(serializedTransaction));
});
await check("prepareTransactionRequest fills every field", async () => {
    const request = await wallet.prepareTransactionRequest({ to: carol.address, value: 1n });
    assert.equal(request.gas, 21_000n);
    assert.equal(request.nonce, await reader.getTransactionCount({ address: alice.address }));
    assert.ok(request.maxFeePerGas >= request.maxPriorityFeePerGas);
    assert.equal(request.chainId, 31337);
});
await check("fillTransaction by the node, or −32601 so that viem falls back", async () => {
    try {
        const { transaction } = await reader.fillTransaction({
            account: alice.address,
            to: carol.address,
            value: 1n,
        });
        assert.equal(transaction.gas, 21_000n);
        assert.equal(transaction.nonce, await reader.getTransactionCount({ address: alice.address }));
    } catch (error) {
        assert.equal(error.walk?.((e) => e.code === -32601)?.code, -32601, error);
    }
});

await check("estimateFeesPerGas and getFeeHistory", async () => {
    const fees = await reader.estimateFeesPerGas();
    assert.ok(fees.maxFeePerGas > fees.maxPriorityFeePerGas);
    const before = await reader.getBlockNumber();
    const history = await reader.getFeeHistory({ blockCount: 3, rewardPercentiles: [25, 75] });
    assert.equal(history.baseFeePerGas.length, 4);
    assert.deepEqual(
        history.reward.map((r) => r.length),
        [2, 2, 2],
    );
    const newest = history.oldestBlock + 2n;
    assert.ok(before <= newest && newest <= (await reader.getBlockNumber()), `${newest}`);
});
await check("getBlobBaseFee", async () => assert.ok((await reader.getBlobBaseFee()) >= 1n));
await check("getBlock with transactions", async () => {
    const { blockNumber } = await act({ to: carol.address, value: 1n });
    const block = await reader.getBlock({ blockNumber, includeTransactions: true });
    assert.equal(block.transactions.length, 1);
    assert.equal(block.transactions[0].blockNumber, block.number);
    assert.equal(block.transactions[0].transactionIndex, 0);
    assert.equal((await reader.getBlock({ blockTag: "earliest" })).number, 0n);
    // A validator may have made further blocks by now.
    const finalized = await reader.getBlock({ blockTag: "finalized" });
    assert.equal(finalized.number <= (await reader.getBlock({ blockTag: "latest" })).number, true);
});
await check("getTransaction by block and index", async () => {
    const { blockNumber } = await act({ to: carol.address, value: 1n });
    const block = await reader.getBlock({ blockNumber });
    const byHash = await reader.getTransaction({ blockHash: block.hash, index: 0 });
    const byNumber = await reader.getTransaction({ blockNumber: block.number, index: 0 });
    assert.equal(byHash.hash, block.transactions[0]);
    assert.deepEqual(byHash, byNumber);
    assert.equal(await reader.getBlockTransactionCount({ blockHash: block.hash }), 1);
});
await check("a transaction and a block that do not exist", async () => {
    const nothing = toHex(1, { size: 32 });
    await assert.rejects(reader.getTransaction({ hash: nothing }), { name: "TransactionNotFoundError" });
    await assert.rejects(reader.getTransactionReceipt({ hash: nothing }), {
        name: "TransactionReceiptNotFoundError",
    });
    await assert.rejects(reader.getBlock({ blockNumber: 1_000_000n }), { name: "BlockNotFoundError" });
});
await onlyDeveloper("accounts that the node holds send, sign a message, sign typed data", async () => {
    assert.equal((await unlocked.getAddresses()).length, 10);
    const hash = await unlocked.sendTransaction({ to: bob.address, value: 1n });
    assert.equal((await included(hash)).from, carol.address.toLowerCase());
    const signature = await unlocked.signMessage({ message: "hello" });
    assert.ok(await verifyMessage({ address: carol.address, message: "hello", signature }));
    const typed = {
        domain: { name: "Almanac", version: "1", chainId: 31337, verifyingContract: address },
        types: {
            Mail: [
                { name: "to", type: "address" },
                { name: "text", type: "string" },
            ],
        },
        primaryType: "Mail",
        message: { to: bob.address, text: "hi" },
    };
    const typedSignature = await unlocked.signTypedData(typed);
    assert.ok(await verifyTypedData({ address: carol.address, ...typed, signature: typedSignature }));
});

await check("nonce too low, in viem's words", async () => {
    const error = await wallet.sendTransaction({ to: carol.address, nonce: 0, gas: 21_000n }).catch((e) => e);
    assert.ok(error instanceof BaseError);
    assert.equal(error.walk((e) => e.name === "NonceTooLowError")?.name, "NonceTooLowError", error.message);
});
await check("insufficient funds, in viem's words", async () => {
    const error = await wallet
        .sendTransaction({ to: carol.address, value: parseEther("100000") })
        .catch((e) => e);
    assert.ok(
        error.walk((e) => e.name === "InsufficientFundsError"),
        error.message,
    );
});

finish();
