// ethers: batches by default, its own polling, and decoding by its own rules.

import assert from "node:assert/strict";
import {
    AbiCoder,
    Contract,
    ContractFactory,
    Interface,
    JsonRpcProvider,
    NonceManager,
    Wallet,
    WebSocketProvider,
    getCreateAddress,
    parseEther,
    toBeHex,
    verifyMessage,
    verifyTypedData,
    zeroPadValue,
} from "ethers";
import { accounts, artifact, check, finish, onlyAlmanac, until, url, wsUrl } from "./check.mjs";

const counterFile = artifact("Counter");
// Without the cache, as ethers' documentation asks where every transaction is a block.
const provider = new JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 50 });
const [alice, bob] = accounts.map(({ key }) => new Wallet(key, provider));
let counter;

await check("getNetwork and getBlockNumber", async () => {
    assert.equal((await provider.getNetwork()).chainId, 31337n);
    assert.equal(await provider.getBlockNumber(), 0);
});
await check("requests made together travel in one batch", async () => {
    const sizes = [];
    const record = ({ action, payload }) =>
        action === "sendRpcPayload" && sizes.push(Array.isArray(payload) ? payload.length : 1);
    provider.on("debug", record);
    const balances = await Promise.all(accounts.map(({ address }) => provider.getBalance(address)));
    provider.off("debug", record);
    assert.deepEqual(
        balances,
        accounts.map(() => parseEther("10000")),
    );
    // ethers may add a question of its own.
    assert.ok(sizes.length === 1 && sizes[0] >= accounts.length, `${sizes}`);
});
await check("ContractFactory.deploy", async () => {
    const factory = new ContractFactory(counterFile.abi, counterFile.bytecode, alice);
    counter = await factory.deploy(1000n);
    await counter.waitForDeployment();
    assert.equal(await counter.getAddress(), getCreateAddress({ from: alice.address, nonce: 0 }));
    assert.equal(await counter.limit(), 1000n);
    assert.equal((await provider.getCode(counter)).length, counterFile.deployedBytecode.length);
});
await check("a write, its receipt and its event", async () => {
    const tx = await counter.increase(5n);
    const receipt = await tx.wait();
    assert.equal(receipt.status, 1);
    assert.equal(receipt.logs[0].fragment.name, "Increased");
    assert.deepEqual([...receipt.logs[0].args], [alice.address, 5n, 5n]);
    assert.equal(await counter.value(), 5n);
    assert.equal(await counter.value({ blockTag: receipt.blockNumber - 1 }), 0n);
    assert.equal(receipt.fee, receipt.gasUsed * receipt.gasPrice);
});
await check("staticCall and estimateGas", async () => {
    assert.equal(await counter.increase.staticCall(4n), 9n);
    const gas = await counter.increase.estimateGas(4n);
    const receipt = await (await counter.increase(4n, { gasLimit: gas })).wait();
    assert.equal(receipt.status, 1);
    assert.ok(receipt.gasUsed <= gas);
});
await check("a custom error decodes", async () => {
    await assert.rejects(counter.increase.staticCall(5000n), (error) => {
        assert.equal(error.code, "CALL_EXCEPTION");
        assert.equal(error.revert.name, "AboveLimit");
        assert.deepEqual([...error.revert.args], [5009n, 1000n]);
        return true;
    });
});
await check("a custom error of a write carries its data", async () => {
    await assert.rejects(counter.connect(bob).set(1n), (error) => {
        assert.equal(error.code, "CALL_EXCEPTION");
        assert.equal(error.action, "estimateGas");
        assert.deepEqual([...counter.interface.parseError(error.data).args], [bob.address]);
        return true;
    });
});
await check("a reason decodes", async () => {
    await assert.rejects(counter.refuse("not today"), { code: "CALL_EXCEPTION", reason: "not today" });
});
await check("a transaction that reverts in its block", async () => {
    const tx = await counter.increase(5000n, { gasLimit: 100_000n });
    await assert.rejects(tx.wait(), (error) => error.code === "CALL_EXCEPTION" && error.receipt.status === 0);
});
await check("getFeeData", async () => {
    const fees = await provider.getFeeData();
    const { baseFeePerGas } = await provider.getBlock("latest");
    assert.ok(fees.gasPrice > 0n);
    assert.ok(fees.maxPriorityFeePerGas >= 0n);
    assert.equal(fees.maxFeePerGas, 2n * baseFeePerGas + fees.maxPriorityFeePerGas);
});
await check("queryFilter by indexed arguments", async () => {
    await (await counter.connect(bob).increase(6n)).wait();
    const all = await counter.queryFilter(counter.filters.Increased(), 0);
    assert.deepEqual(
        all.map((log) => log.args.step),
        [5n, 4n, 6n],
    );
    const bobs = await counter.queryFilter(counter.filters.Increased(bob.address));
    assert.deepEqual(
        bobs.map((log) => log.args.value),
        [15n],
    );
    assert.deepEqual(
        (await counter.queryFilter(counter.filters.Increased(null, [4n, 6n]), 0, "latest")).length,
        2,
    );
});
await check("getLogs by block hash", async () => {
    const block = await provider.getBlock("latest");
    const logs = await provider.getLogs({ blockHash: block.hash });
    assert.equal(logs.length, 1);
    assert.equal(logs[0].blockNumber, block.number);
    assert.equal(logs[0].index, 0);
    assert.equal(logs[0].removed, false);
});
await check("getBlock with prefetched transactions", async () => {
    const block = await provider.getBlock("latest", true);
    assert.equal(block.prefetchedTransactions.length, 1);
    const [tx] = block.prefetchedTransactions;
    assert.equal(tx.from, bob.address);
    assert.equal(tx.to, await counter.getAddress());
    assert.equal(tx.blockHash, block.hash);
    // The signature is real: it gives the hash and the sender back.
    const signed = await provider.getTransaction(tx.hash);
    assert.equal(signed.signature.serialized, tx.signature.serialized);
});
await onlyAlmanac("a block has its time in milliseconds", async () => {
    const block = await provider.getBlock("latest");
    const raw = await provider.send("eth_getBlockByHash", [block.hash, false]);
    assert.equal(Math.floor(Number(raw.timestampMs) / 1000), block.timestamp);
});
await check("getTransactionResult and the receipts of a block", async () => {
    const block = await provider.getBlock("latest");
    const receipts = await provider.send("eth_getBlockReceipts", [toBeHex(block.number)]);
    assert.equal(receipts.length, 1);
    assert.deepEqual(receipts[0], await provider.send("eth_getTransactionReceipt", [block.transactions[0]]));
});
await check("provider.on block and event", async () => {
    const blocks = [];
    const steps = [];
    // ethers hears of a block a poll later, so it has to have begun.
    await provider.on("block", (number) => blocks.push(number));
    await counter.on("Increased", (by, step) => steps.push(step));
    const begin = await provider.getBlockNumber();
    await new Promise((resolve) => setTimeout(resolve, 200));
    await (await counter.increase(1n)).wait();
    await (await counter.increase(2n)).wait();
    await until("both events", () => steps.length === 2 && blocks.includes(begin + 2));
    assert.deepEqual(steps, [1n, 2n]);
    assert.deepEqual(
        blocks.filter((n) => n > begin),
        [begin + 1, begin + 2],
    );
    await provider.removeAllListeners();
    await counter.removeAllListeners();
});
await check("WebSocketProvider calls and subscribes", async () => {
    const socket = new WebSocketProvider(wsUrl);
    try {
        const heard = { blocks: [], pending: [], steps: [] };
        const viaSocket = counter.connect(new Wallet(accounts[2].key, socket));
        await socket.on("block", (number) => heard.blocks.push(number));
        await socket.on("pending", (hash) => heard.pending.push(hash));
        await viaSocket.on("Increased", (by, step) => heard.steps.push(step));
        await new Promise((resolve) => setTimeout(resolve, 200));
        const begin = await socket.getBlockNumber();
        const tx = await viaSocket.increase(8n);
        const receipt = await tx.wait();
        assert.equal(receipt.blockNumber, begin + 1);
        await until(
            "block, pending transaction and event",
            () => heard.blocks.length && heard.pending.length && heard.steps.length,
        );
        assert.deepEqual(heard, { blocks: [begin + 1], pending: [tx.hash], steps: [8n] });
    } finally {
        await socket.destroy();
    }
});
await check("an account of the node sends and signs", async () => {
    const signer = await provider.getSigner(accounts[3].address);
    const receipt = await (await signer.sendTransaction({ to: bob.address, value: 1n })).wait();
    assert.equal(receipt.from, accounts[3].address);
    assert.equal(verifyMessage("hello", await signer.signMessage("hello")), accounts[3].address);
    const domain = { name: "Almanac", version: "1", chainId: 31337, verifyingContract: bob.address };
    const types = {
        Order: [
            { name: "what", type: "string" },
            { name: "items", type: "Item[]" },
        ],
        Item: [{ name: "id", type: "uint256" }],
    };
    const value = { what: "tea", items: [{ id: 1n }, { id: 2n }] };
    const signature = await signer.signTypedData(domain, types, value);
    assert.equal(verifyTypedData(domain, types, value, signature), accounts[3].address);
});
await check("listAccounts", async () => {
    const signers = await provider.listAccounts();
    assert.equal(signers.length, 10);
    assert.equal(signers[1].address, bob.address);
});
await check("NonceManager sends many at once", async () => {
    const manager = new NonceManager(new Wallet(accounts[4].key, provider));
    const sent = await Promise.all(
        Array.from({ length: 20 }, () => manager.sendTransaction({ to: bob.address, value: 1n })),
    );
    const receipts = await Promise.all(sent.map((tx) => tx.wait()));
    assert.ok(receipts.every((receipt) => receipt.status === 1));
    assert.equal(await provider.getTransactionCount(accounts[4].address), 20);
});
await check("a typed transaction with an access list", async () => {
    const address = await counter.getAddress();
    const tx = await alice.sendTransaction({
        type: 1,
        to: address,
        data: counter.interface.encodeFunctionData("increase", [1n]),
        accessList: [{ address, storageKeys: [zeroPadValue("0x00", 32)] }],
    });
    await tx.wait();
    const found = await provider.getTransaction(tx.hash);
    assert.equal(found.type, 1);
    assert.deepEqual(found.accessList, [{ address, storageKeys: [zeroPadValue("0x00", 32)] }]);
});
await check("an EIP-7702 authorization", async () => {
    const file = artifact("Delegate");
    const deployed = await new ContractFactory(file.abi, file.bytecode, alice).deploy();
    await deployed.waitForDeployment();
    const authorization = await bob.authorize({ address: await deployed.getAddress() });
    const receipt = await (
        await alice.sendTransaction({ type: 4, to: bob.address, authorizationList: [authorization] })
    ).wait();
    assert.equal(receipt.status, 1);
    assert.equal(await new Contract(bob.address, file.abi, provider).self(), bob.address);
    const found = await provider.getTransaction(receipt.hash);
    assert.equal(found.authorizationList[0].address, await deployed.getAddress());
    assert.equal(found.authorizationList[0].nonce, authorization.nonce);
});
await check("getStorage and getTransactionCount in the past", async () => {
    assert.equal(BigInt(await provider.getStorage(counter, 0)), await counter.value());
    assert.equal(await provider.getTransactionCount(alice.address, 0), 0);
    assert.equal(await provider.getBalance(alice.address, 0), parseEther("10000"));
});
await check("a raw call that returns nothing, and one that returns bytes", async () => {
    assert.equal(
        await provider
            .call({ to: bob.address, from: alice.address, value: 1n, data: "0x" })
            .catch((e) => e.message),
        "0x",
    );
    const data = new Interface(counterFile.abi).encodeFunctionData("owner");
    const [owner] = AbiCoder.defaultAbiCoder().decode(
        ["address"],
        await provider.call({ to: await counter.getAddress(), data }),
    );
    assert.equal(owner, alice.address);
});
await check("too little money and a stale nonce, in ethers' codes", async () => {
    await assert.rejects(bob.sendTransaction({ to: alice.address, value: parseEther("20000") }), {
        code: "INSUFFICIENT_FUNDS",
    });
    await assert.rejects(alice.sendTransaction({ to: bob.address, nonce: 0, gasLimit: 21_000n }), {
        code: "NONCE_EXPIRED",
    });
});
await check("a replacement that pays too little, in ethers' code", async () => {
    await provider.send("evm_setAutomine", [false]);
    try {
        const nonce = await provider.getTransactionCount(alice.address);
        const fields = {
            to: accounts[2].address,
            nonce,
            gasLimit: 21_000n,
            maxPriorityFeePerGas: 2_000_000_000n,
            maxFeePerGas: 90_000_000_000n,
        };
        await alice.sendTransaction({ ...fields, value: 1n });
        await assert.rejects(alice.sendTransaction({ ...fields, value: 2n }), {
            code: "REPLACEMENT_UNDERPRICED",
        });
        const better = await alice.sendTransaction({
            ...fields,
            value: 3n,
            maxPriorityFeePerGas: 9_000_000_000n,
            maxFeePerGas: 190_000_000_000n,
        });
        await provider.send("evm_mine", []);
        assert.equal((await better.wait()).status, 1);
    } finally {
        await provider.send("evm_setAutomine", [true]);
    }
});

finish();
