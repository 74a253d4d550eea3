// The connection to a node that refuses, closes and comes back.
import assert from "node:assert/strict";
import test, { mock } from "node:test";

/// Sockets that were opened, newest last. A test opens, answers and closes them.
const sockets = [];
globalThis.WebSocket = class {
    static OPEN = 1;
    readyState = 0;
    sent = [];
    constructor() {
        sockets.push(this);
    }
    send(text) {
        this.sent.push(JSON.parse(text));
    }
    open() {
        this.readyState = 1;
        this.onopen();
    }
    close() {
        this.readyState = 3;
        this.onclose();
    }
    answer(message) {
        this.onmessage({ data: JSON.stringify({ id: this.sent.at(-1).id, ...message }) });
    }
};
const { Rpc, isPassing } = await import("../src/lib/rpc.js");
const settle = async () => {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
};

test("a node that accepts and closes at once is asked less and less often", () => {
    mock.timers.enable({ apis: ["setTimeout", "Date"] });
    sockets.length = 0;
    new Rpc("ws://node", { onStatus() {} });
    for (let ms = 0; ms < 60_000; ms += 50) {
        if (sockets.at(-1).readyState === 0) {
            sockets.at(-1).open();
            sockets.at(-1).close();
        }
        mock.timers.tick(50);
    }
    assert.ok(sockets.length <= 16, `${sockets.length} connections in a minute`);
    assert.ok(sockets.length >= 8, `${sockets.length} connections in a minute`);
    mock.timers.reset();
});

test("after a connection that lived, the next comes soon", () => {
    mock.timers.enable({ apis: ["setTimeout", "Date"] });
    sockets.length = 0;
    new Rpc("ws://node", { onStatus() {} });
    for (let failures = 0; failures < 6; failures += 1) {
        sockets.at(-1).close();
        mock.timers.tick(12_000);
    }
    const { length } = sockets;
    sockets.at(-1).open();
    mock.timers.tick(6_000);
    sockets.at(-1).close();
    mock.timers.tick(400);
    assert.equal(sockets.length, length + 1);
    mock.timers.reset();
});

test("a subscription that is refused once begins later, and the reason is told", async () => {
    mock.timers.enable({ apis: ["setTimeout", "Date"] });
    sockets.length = 0;
    const told = [];
    const problems = [];
    const rpc = new Rpc("ws://node", { onStatus() {}, onProblem: (what, error) => problems.push([what, error?.message ?? null]) });
    rpc.subscribe("eth_subscribe", ["newHeads"], (head) => told.push(head));
    const [socket] = sockets;
    socket.open();
    socket.answer({ error: { code: -32005, message: "too many requests" } });
    await settle();
    mock.timers.tick(600);
    await settle();
    socket.answer({ result: "0x1" });
    await settle();
    socket.onmessage({ data: JSON.stringify({ method: "eth_subscription", params: { subscription: "0x1", result: 7 } }) });
    assert.deepEqual(told, [7]);
    assert.deepEqual(problems, [["news of newHeads", "too many requests"], ["news of newHeads", null]]);
    mock.timers.reset();
});

test("what the node is too busy for, or was not reached for, may be asked again", async () => {
    sockets.length = 0;
    const rpc = new Rpc("ws://node", { onStatus() {} });
    const [socket] = sockets;
    socket.open();
    const failed = (answer) => {
        const asked = rpc.call("eth_chainId").then(assert.fail, (error) => error);
        answer();
        return asked;
    };
    const refused = (code) => failed(() => socket.answer({ error: { code, message: "no" } }));
    assert.deepEqual([isPassing(await refused(-32005)), isPassing(await refused(-32602)), isPassing(new TypeError("ours"))], [true, false, false]);
    mock.timers.enable({ apis: ["setTimeout"] });
    assert.equal(isPassing(await failed(() => socket.close())), true);
    mock.timers.reset();
});
