// AIP-125: scheduled transactions that compete by price.
import abis from "virtual:abi";
import { encodeCall } from "../lib/abi.js";
import { big, coins as coinsOf, exact, grouped, gwei, hex, num, plural, shortHex, solidityAddress } from "../lib/format.js";
import { decodeCall } from "./decode.js";
import { whatOf } from "./what.js";

const { functions, events } = abis.IScheduledTransactions;

export const address = "0x000000000000000000000000000000000000a101";
export const name = "market";
export const title = "Scheduled transaction";
export const spec = "AIP-125";

export const form = {
    label: "Transaction",
    words: "One call in your own name at a time, to a tenth of a second. When a block has more of them than room, the higher bid goes first. AIP-125.",
    target: "Target",
    targetHint: "The contract that is called, or the account that is paid.",
    legend: "Gas, bid and value",
    costs: "is the deposit; what is not used returns in the block of the run",
    send: "Schedule it",
};

export function describe(schedule) {
    const { terms } = schedule;
    return { what: whatOf(schedule), how: `once, bids ${gwei(terms?.maxGasUnitPrice)} gwei`, call: decodeCall(terms?.input) };
}

export function sentence(schedule) {
    const { terms } = schedule;
    return `${whatOf(schedule)}, once, for at most ${gwei(terms?.maxGasUnitPrice)} gwei per gas.`;
}

export function dueOf({ firstRun }) {
    return firstRun ? num(firstRun.ms) : null;
}

/// The price is settled at the end of the block; the receipt has it.
export function costOf(_, receipt) {
    return big(receipt.gasUsed) * big(receipt.effectiveGasPrice);
}

export function facts({ terms, market }) {
    return [
        ["Bid", `${gwei(terms.maxGasUnitPrice)} gwei per gas at most; it pays what its block asked for`],
        ["Gas limit", plural(num(terms.gasLimit), "gas", "gas")],
        ["Value", coinsOf(terms.value)],
        ["Called in the name of", terms.from],
        ["Waits for a price", `at most ${plural(num(terms.expiryBlocks), "block")}`],
        ...(market?.expectedBlock ? [["Expected in block", grouped(num(market.expectedBlock))]] : []),
        ...(market?.key ? [["Key", `${num(market.key.time)} · ${shortHex(market.key.txnId, 10, 6)}`]] : []),
    ];
}

const keyOf = ({ market: { key } }) => [big(key.time), big(key.gasPriority), key.txnId];

export function actions(schedule) {
    if (!schedule.market?.key) return [];
    const args = () => [keyOf(schedule)];
    if (schedule.market.isClaimable) {
        return [{ name: "claim", label: "Claim", who: "anyone", words: `Returns the deposit, ${coinsOf(schedule.escrow)}, to its sender.`, transaction: () => ({ to: address, data: encodeCall(functions.claim, args()) }) }];
    }
    return [
        {
            name: "cancel",
            label: "Cancel",
            who: "owner",
            words: `Takes it back. The whole deposit, ${coinsOf(schedule.escrow)}, returns to the sender.`,
            transaction: () => ({ to: address, data: encodeCall(functions.cancel, args()) }),
        },
    ];
}

export function createdId(receipt) {
    const log = receipt.logs.find(({ topics }) => topics[0] === events.TransactionScheduledEvent.topic);
    return log ? BigInt(log.topics[1]).toString() : null;
}

export const depositOf = ({ gasLimit, bid, value }) => big(gasLimit) * bid + value;

export function order({ sender, target, data, atMs, gasLimit, bid, value }) {
    const txn = [sender, BigInt(atMs), BigInt(gasLimit), bid, true, target, value, data, 0n];
    return { to: address, value: hex(depositOf({ gasLimit, bid, value })), data: encodeCall(functions.insert, [txn]) };
}

export function code(given, { url, account, isDev }) {
    const { target, data, atMs, gasLimit, bid, value } = given;
    const sender = account ?? "0x…";
    const coins = exact(depositOf(given));
    const tuple = "address,uint64,uint64,uint64,bool,address,uint256,bytes,uint32";
    return {
        cast: `cast send --rpc-url ${url} ${isDev ? `--unlocked --from ${account}` : "--private-key $KEY"} --value ${coins}ether \\
  ${address} \\
  "insert((${tuple}))" \\
  "(${sender},${atMs},${gasLimit},${bid},true,${target},${value},${data},0)"`,
        Solidity: `IScheduledTransactions scheduled = IScheduledTransactions(${address});

IScheduledTransactions.ScheduleMapKey memory key = scheduled.insert{value: ${coins} ether}(
    IScheduledTransactions.ScheduledTransaction({
        senderAddr: address(this),
        scheduledTimeMs: ${atMs},
        maxGasAmount: ${gasLimit},
        maxGasUnitPrice: ${bid},  // wei
        passSigner: true,  // msg.sender of the run is this contract
        to: ${solidityAddress(target)},
        value: ${value},
        data: hex"${data.slice(2)}",
        expiryBlocks: 0  // as long as the chain allows by default
    })
);`,
        viem: `import { createWalletClient, http, parseAbi, parseEther } from "viem";

const client = createWalletClient({ transport: http("${url}") });
await client.writeContract({
    account: "${sender}",
    chain: null,
    address: "${address}",
    abi: parseAbi([
        "struct ScheduledTransaction { address senderAddr; uint64 scheduledTimeMs; uint64 maxGasAmount; uint64 maxGasUnitPrice; bool passSigner; address to; uint256 value; bytes data; uint32 expiryBlocks; }",
        "function insert(ScheduledTransaction txn) payable returns ((uint64, uint64, bytes32))",
    ]),
    functionName: "insert",
    args: [{
        senderAddr: "${sender}",
        scheduledTimeMs: ${atMs}n,
        maxGasAmount: ${gasLimit}n,
        maxGasUnitPrice: ${bid}n,
        passSigner: true,
        to: "${target}",
        value: ${value}n,
        data: "${data}",
        expiryBlocks: 0,
    }],
    value: parseEther("${coins}"),
});`,
    };
}

export const runTopics = [events.TransactionExecutedEvent.topic];

export function runOf({ args }) {
    return { id: args[0].value.toString(), success: args[3].value, gasUsed: Number(args[4].value), error: null };
}
