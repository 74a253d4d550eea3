// What is scheduled, as the `almanac_` methods tell it, with numbers as viem gives them.

import type { Address, Client, Hash, Hex } from "viem";

/** An id as people write it, `2-1-0`, or as contracts and events have it. */
export type ScheduleId = string | bigint;

export type Status = "pending" | "quarantined" | "succeeded" | "failed" | "cancelled" | "exhausted";
export type Lane = "reserved" | "cron" | "market" | "spare" | "signed";

/** The key by which the market's contract knows a scheduled transaction. */
export type MarketKey = { time: bigint; gasPriority: bigint; txnId: Hash };

export type Schedule = {
    id: string;
    idNumber: bigint;
    status: Status;
    lane: Lane;
    owner: Address;
    target: Address;
    /** The door, and what only it has, as the node writes it. */
    terms: { door: string; [term: string]: unknown };
    nextRun: Date | null;
    runs: number;
    runsFailed: number;
    /** null: only the escrow limits them. */
    runsLeft: number | null;
    /** Wei. */
    feesTotal: bigint;
    escrow: bigint;
    market: { key: MarketKey; bid: bigint; isWaiting: boolean; isClaimable: boolean; expectedBlock: bigint | null } | null;
    end: { reason: string | null; refunded: bigint | null } | null;
};

export type Run = { run: number; time: Date; success: boolean; error: string | null; fee: bigint | null; hash: Hash };

export type AgendaEntry = { id: string; idNumber: bigint; lane: Lane; due: Date; door: string; owner: Address; target: Address };

export type ScheduleFilter = { owner?: Address; target?: Address; status?: Status; lane?: Lane; order?: "oldest" | "newest"; cursor?: string; limit?: number };

/** What an order that is not sent yet would do. */
export type Preview = {
    /** Why the chain would refuse it. */
    refused: string | null;
    /** Wei that the order takes beside its gas. */
    costs: bigint | null;
    runs: { time: Date; success: boolean; error: string | null; gasUsed: bigint; fee: bigint }[];
    escrowSuffices: boolean;
};

/** What became of a transaction or a run, as Hedera's records have it. Amounts are wei. */
export type TransactionRecord = {
    /** `SUCCESS`, or another name of Hedera's codes. */
    status: string;
    code: number;
    /** The schedule that it created, or found pending already. */
    createdId: bigint | null;
    /** Nanoseconds. */
    consensusTimestamp: bigint;
    /** Of a run: those of the transaction that created its schedule. */
    transactionId: { validStart: bigint | null; account: Address; scheduled: boolean; nonce: number };
    memo: string;
    fee: bigint;
    /** null where the node does not keep the state before the block. */
    transfers: { account: Address; amount: bigint }[] | null;
    tokenTransfers: { token: Address; transfers: { account: Address; amount: bigint }[] }[];
    /** Of a run: its schedule. */
    scheduleRef: bigint | null;
};

type Json = Record<string, any>;
type Request = (args: { method: string; params: unknown[] }) => Promise<any>;

const idOf = (id: ScheduleId): string => (typeof id === "bigint" ? `0x${id.toString(16)}` : id);
const number = (quantity: Hex): number => Number(quantity);
const orNull = <T>(value: unknown, read: (value: any) => T): T | null => (value === null || value === undefined ? null : read(value));
const date = ({ ms }: { ms: Hex }): Date => new Date(Number(ms));

function schedule(found: Json): Schedule {
    const { id, status, lane, owner, target, terms } = found;
    return {
        id, status, lane, owner, target, terms,
        idNumber: BigInt(found.idNumber),
        nextRun: orNull(found.nextRun, date),
        runs: number(found.runs),
        runsFailed: number(found.runsFailed),
        runsLeft: orNull(found.runsLeft, number),
        feesTotal: BigInt(found.feesTotal),
        escrow: BigInt(found.escrow),
        market: orNull(found.market, (market: Json) => ({
            key: { time: BigInt(market.key.time), gasPriority: BigInt(market.key.gasPriority), txnId: market.key.txnId },
            bid: BigInt(market.bid),
            isWaiting: market.isWaiting,
            isClaimable: market.isClaimable,
            expectedBlock: orNull(market.expectedBlock, BigInt),
        })),
        end: orNull(found.end, (end: Json) => ({ reason: end.reason ?? null, refunded: orNull(end.refunded, BigInt) })),
    };
}

const run = (found: Json): Run => ({
    run: number(found.run),
    time: date(found.time),
    success: found.success,
    error: found.error,
    fee: orNull(found.fee, BigInt),
    hash: found.receipt.transactionHash,
});

const nanoseconds = ({ seconds, nanos }: Json): bigint => BigInt(seconds) * 1_000_000_000n + BigInt(nanos);
const amounts = (list: Json[]) => list.map(({ accountID, amount }) => ({ account: accountID as Address, amount: BigInt(amount) }));
const idNumber = (name: Json): bigint => BigInt(name.idNumber);

function record(found: Json): TransactionRecord {
    const { receipt, transactionID, memo } = found;
    const { accountID: account, scheduled, nonce } = transactionID;
    return {
        status: receipt.status,
        code: receipt.code,
        createdId: orNull(receipt.scheduleID, idNumber),
        consensusTimestamp: nanoseconds(found.consensusTimestamp),
        transactionId: { validStart: orNull(transactionID.transactionValidStart, nanoseconds), account, scheduled, nonce },
        memo,
        fee: BigInt(found.transactionFee),
        transfers: orNull(found.transferList, amounts),
        tokenTransfers: (found.tokenTransferList as Json[]).map(({ token, transfers }) => ({ token, transfers: amounts(transfers) })),
        scheduleRef: orNull(found.scheduleRef, idNumber),
    };
}

/** The reading actions of this package. */
export function calendarActions(client: Client) {
    const ask = (method: string, ...params: unknown[]) => (client.request as unknown as Request)({ method, params });
    const getSchedule = async (id: ScheduleId): Promise<Schedule | null> =>
        orNull(await ask("almanac_getSchedule", idOf(id)), schedule);
    const getRuns = async (id: ScheduleId, page: { order?: "oldest" | "newest"; cursor?: string; limit?: number } = {}) => {
        const { runs, cursor } = await ask("almanac_getRuns", idOf(id), page);
        return { runs: (runs as Json[]).map(run), cursor: cursor as string | null };
    };
    return {
        /** A schedule, also one that has ended; null if there was none. */
        getSchedule,
        /** A page of schedules by creation, oldest first unless `order` says otherwise. */
        listSchedules: async (filter: ScheduleFilter = {}) => {
            const { schedules, cursor } = await ask("almanac_listSchedules", filter);
            return { schedules: (schedules as Json[]).map(schedule), cursor: cursor as string | null };
        },
        /** A page of what has run, with what each cost. */
        getRuns,
        /** What became of a transaction or a run; null where no block has it. */
        getRecord: async (hash: Hash): Promise<TransactionRecord | null> => orNull(await ask("almanac_getRecord", hash), record),
        /** What is due next, by time. */
        getAgenda: async (span: { from?: Date; to?: Date; lanes?: Lane[]; cursor?: string; limit?: number } = {}) => {
            const { from, to, ...rest } = span;
            const times = { ...(from && { from: from.getTime() }), ...(to && { to: to.getTime() }) };
            const { entries, cursor } = await ask("almanac_agenda", { ...rest, ...times });
            const read = ({ id, idNumber, lane, due, door, owner, target }: Json): AgendaEntry =>
                ({ id, idNumber: BigInt(idNumber), lane, due: date(due as { ms: Hex }), door, owner, target });
            return { entries: (entries as Json[]).map(read), cursor: cursor as string | null };
        },
        /** What a transaction that schedules something would cost and do, without sending it. */
        previewSchedule: async (order: { from: Address; to: Address; data: Hex; value?: bigint }, runs = 1): Promise<Preview> => {
            const value = `0x${(order.value ?? 0n).toString(16)}`;
            const found = await ask("almanac_preview", { ...order, value }, runs);
            const read = ({ time, success, error, gasUsed, fee }: Json) =>
                ({ time: date(time as { ms: Hex }), success, error, gasUsed: BigInt(gasUsed), fee: BigInt(fee) });
            return {
                refused: found.order?.error ?? null,
                costs: orNull(found.order?.costs, BigInt),
                runs: (found.runs as Json[]).map(read),
                escrowSuffices: found.escrowSuffices,
            };
        },
        /** Waits until a schedule has run so often, or has ended without it: then the answer is null. */
        waitForRun: async (id: ScheduleId, { count = 1, timeout = 60_000, interval = client.pollingInterval } = {}): Promise<Run | null> => {
            const end = Date.now() + timeout;
            for (;;) {
                const found = await getSchedule(id);
                if (!found) throw new Error(`there is no schedule ${idOf(id)}`);
                if (found.runs >= count) return (await getRuns(id, { order: "newest", limit: 1 })).runs[0] ?? null;
                if (found.status !== "pending") return null;
                if (Date.now() >= end) throw new Error(`schedule ${found.id} has run ${found.runs} times after ${timeout} ms, ${count} were expected`);
                await new Promise((resolve) => setTimeout(resolve, interval));
            }
        },
    };
}
