// OpenZeppelin's contracts, unchanged from npm: a token, vesting, a timelock and a governor over weeks of chain time.

import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import {
    AbiCoder,
    ContractFactory,
    Interface,
    JsonRpcProvider,
    Signature,
    Wallet,
    ZeroAddress,
    ZeroHash,
    id,
    parseEther,
} from "ethers";
import { accounts, check, finish, rpc, url } from "./check.mjs";

const require = createRequire(import.meta.url);
const provider = new JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 50 });
const [alice, bob, carol] = accounts.map(({ key }) => new Wallet(key, provider));
const DAY = 86_400;
let compiled;
let token;

/** Everything that the two files reach, by name. */
function compile() {
    const solc = require("solc");
    const files = ["openzeppelin/Token.sol", "openzeppelin/Council.sol"];
    const input = {
        language: "Solidity",
        sources: Object.fromEntries(files.map((file) => [file, { content: fs.readFileSync(file, "utf8") }])),
        settings: {
            evmVersion: "osaka",
            optimizer: { enabled: true, runs: 200 },
            outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
        },
    };
    const read = (file) => ({ contents: fs.readFileSync(require.resolve(file), "utf8") });
    const output = JSON.parse(solc.compile(JSON.stringify(input), { import: read }));
    const errors = (output.errors ?? []).filter((problem) => problem.severity === "error");
    assert.deepEqual(
        errors.map((error) => error.formattedMessage),
        [],
    );
    return Object.assign({}, ...Object.values(output.contracts));
}

async function deploy(name, ...args) {
    const { abi, evm } = compiled[name];
    const contract = await new ContractFactory(abi, evm.bytecode.object, alice).deploy(...args);
    return contract.waitForDeployment();
}

const done = async (sent) => {
    const receipt = await (await sent).wait();
    assert.equal(receipt.status, 1);
    return receipt;
};
const now = async () => (await provider.getBlock("latest")).timestamp;

/** Lets time pass and makes a block then. */
async function travel(seconds) {
    await rpc("evm_increaseTime", seconds);
    await rpc("evm_mine");
}

/** The name and arguments of the error that a call ends with. */
async function revertOf(contract, method, ...args) {
    const error = await contract[method].staticCall(...args).then(
        () => assert.fail(`${method} was to revert`),
        (e) => e,
    );
    assert.equal(error.code, "CALL_EXCEPTION", error.message);
    // The error may be that of a contract further down.
    const interfaces = Object.values(compiled).map(({ abi }) => new Interface(abi));
    const revert = interfaces.map((known) => known.parseError(error.data)).find(Boolean);
    assert.ok(revert, `no known error in ${error.data}`);
    return [revert.name, ...revert.args];
}

await check("compiles", async () => {
    compiled = compile();
});
await check("ERC-20 transfer, allowance and its errors", async () => {
    token = await deploy("Token", parseEther("1000"));
    await done(token.transfer(bob.address, parseEther("300")));
    assert.equal(await token.balanceOf(bob.address), parseEther("300"));
    await done(token.connect(bob).approve(carol.address, 50n));
    await done(token.connect(carol).transferFrom(bob.address, alice.address, 20n));
    assert.equal(await token.allowance(bob.address, carol.address), 30n);
    assert.deepEqual(await revertOf(token.connect(carol), "transferFrom", bob.address, alice.address, 31n), [
        "ERC20InsufficientAllowance",
        carol.address,
        30n,
        31n,
    ]);
    const [transfer] = await token.queryFilter(token.filters.Transfer(bob.address), 0);
    assert.equal(transfer.args.value, 20n);
});
await check("ERC-20 permit, signed by typed data", async () => {
    const deadline = (await now()) + DAY;
    const domain = {
        name: "Token",
        version: "1",
        chainId: 31337,
        verifyingContract: await token.getAddress(),
    };
    const types = {
        Permit: [
            "owner address",
            "spender address",
            "value uint256",
            "nonce uint256",
            "deadline uint256",
        ].map((field) => ({ name: field.split(" ")[0], type: field.split(" ")[1] })),
    };
    const message = { owner: bob.address, spender: alice.address, value: 99n, nonce: 0n, deadline };
    const { v, r, s } = Signature.from(await bob.signTypedData(domain, types, message));
    await done(token.permit(bob.address, alice.address, 99n, deadline, v, r, s));
    assert.equal(await token.allowance(bob.address, alice.address), 99n);
    assert.equal(
        (await revertOf(token, "permit", bob.address, alice.address, 99n, deadline, v, r, s))[0],
        "ERC2612InvalidSigner",
    );
});
await check("VestingWallet releases by the second", async () => {
    const start = (await now()) + DAY;
    const wallet = await deploy("VestingWallet", carol.address, start, 100 * DAY);
    const address = await wallet.getAddress();
    await done(alice.sendTransaction({ to: address, value: parseEther("100") }));
    assert.equal(await wallet["releasable()"](), 0n);
    await rpc("evm_setNextBlockTimestamp", start + 25 * DAY);
    const before = await provider.getBalance(carol.address);
    await done(wallet["release()"]());
    assert.equal((await provider.getBalance(carol.address)) - before, parseEther("25"));
    await travel(200 * DAY);
    await done(wallet["release()"]());
    assert.equal((await provider.getBalance(carol.address)) - before, parseEther("100"));
    assert.equal(await provider.getBalance(address), 0n);
});
await check("TimelockController refuses before its delay and acts after it", async () => {
    const timelock = await deploy("TimelockController", 2 * DAY, [alice.address], [ZeroAddress], ZeroAddress);
    await done(token.transfer(await timelock.getAddress(), 500n));
    const data = token.interface.encodeFunctionData("transfer", [carol.address, 500n]);
    const operation = [await token.getAddress(), 0n, data, ZeroHash, id("payday")];
    assert.deepEqual(await revertOf(timelock, "schedule", ...operation, DAY), [
        "TimelockInsufficientDelay",
        BigInt(DAY),
        BigInt(2 * DAY),
    ]);
    await done(timelock.schedule(...operation, 2 * DAY));
    assert.equal((await revertOf(timelock, "execute", ...operation))[0], "TimelockUnexpectedOperationState");
    await travel(2 * DAY - 60);
    assert.equal((await revertOf(timelock, "execute", ...operation))[0], "TimelockUnexpectedOperationState");
    await travel(61);
    await done(timelock.connect(bob).execute(...operation));
    assert.equal(await token.balanceOf(carol.address), 500n);
    assert.ok(await timelock.isOperationDone(await timelock.hashOperation(...operation)));
});
await check("Governor with a timelock, from proposal to execution", async () => {
    const timelock = await deploy("TimelockController", DAY, [], [ZeroAddress], alice.address);
    const council = await deploy("Council", await token.getAddress(), await timelock.getAddress());
    await done(timelock.grantRole(await timelock.PROPOSER_ROLE(), await council.getAddress()));
    await done(token.transfer(await timelock.getAddress(), 77n));
    await done(token.delegate(alice.address));
    await done(token.connect(bob).delegate(bob.address));

    const recipient = "0x00000000000000000000000000000000000000f0";
    const actions = [
        [await token.getAddress()],
        [0n],
        [token.interface.encodeFunctionData("transfer", [recipient, 77n])],
    ];
    await done(council.propose(...actions, "pay f0"));
    const proposal = await council.hashProposal(...actions, id("pay f0"));
    const state = async () => Number(await council.state(proposal));
    assert.equal(await state(), 0, "pending");
    assert.equal((await revertOf(council, "castVote", proposal, 1))[0], "GovernorUnexpectedProposalState");
    await rpc("hardhat_mine", "0x6");
    assert.equal(await state(), 1, "active");
    await done(council.castVote(proposal, 1));
    await done(council.connect(bob).castVoteWithReason(proposal, 0, "no"));
    assert.deepEqual(
        [...(await council.proposalVotes(proposal))].map((v) => v / 10n ** 18n),
        [299n, 699n, 0n],
    );
    await rpc("hardhat_mine", "0x14");
    assert.equal(await state(), 4, "succeeded");
    await done(council.queue(...actions, id("pay f0")));
    assert.equal(await state(), 5, "queued");
    assert.equal(
        (await revertOf(council, "execute", ...actions, id("pay f0")))[0],
        "TimelockUnexpectedOperationState",
    );
    await travel(DAY + 1);
    await done(council.execute(...actions, id("pay f0")));
    assert.equal(await state(), 7, "executed");
    assert.equal(await token.balanceOf(recipient), 77n);
});
await check("votes of the past come from checkpoints", async () => {
    const block = await provider.getBlockNumber();
    const before = await token.getVotes(bob.address);
    await done(token.connect(bob).transfer(alice.address, 1000n));
    assert.equal(await token.getPastVotes(bob.address, block), before);
    assert.equal(await token.getVotes(bob.address), before - 1000n);
    const [balance] = AbiCoder.defaultAbiCoder().decode(
        ["uint256"],
        await provider.call({
            to: await token.getAddress(),
            data: token.interface.encodeFunctionData("balanceOf", [bob.address]),
            blockTag: block,
        }),
    );
    assert.equal(balance, (await token.balanceOf(bob.address)) + 1000n);
});

finish();
