// One WebSocket to the node that served this page. Calls made while it is down wait for it, a while.
import { untilDone } from "./retry.js";

const CALL_PATIENCE_MS = 20_000;
const RETRY_MS = [250, 500, 1_000, 2_000, 4_000, 8_000];
/// A connection that lived this long was one. What breaks sooner counts as a failure: a node that accepts and closes at
/// once would be asked four times a second, by every page that is open.
const LIFE_MS_MIN = 5_000;
/// A method that the node does not have.
export const NO_METHOD = -32601;

/// An error that the node answered with.
export class RpcError extends Error {
    constructor({ code, message, data }) {
        super(message);
        this.code = code;
        this.data = data;
    }
}

/// The node was not reached, or not in time.
class Unreached extends Error {}

/// The code of everything that the node has too much of at the moment.
const LIMITED = -32005;

/// Whether the same question may be answered later.
export const isPassing = (error) => error instanceof Unreached || error?.code === LIMITED;

export class Rpc {
    #url;
    #socket = null;
    #nextId = 1;
    #calls = new Map();
    #unsent = [];
    #subscriptions = [];
    #failures = 0;
    #openedAt = null;
    #onStatus;
    #onProblem;

    constructor(url, { onStatus, onProblem = () => {} }) {
        this.#url = url;
        this.#onStatus = onStatus;
        this.#onProblem = onProblem;
        this.#connect();
    }

    /// Calls a method. Rejects with an `RpcError`, or with `Unreached`.
    call(method, ...params) {
        return new Promise((resolve, reject) => {
            const id = this.#nextId++;
            const timer = setTimeout(() => {
                this.#calls.delete(id);
                this.#unsent = this.#unsent.filter((message) => message.id !== id);
                reject(new Unreached(`no answer to ${method} within ${CALL_PATIENCE_MS / 1000} s`));
            }, CALL_PATIENCE_MS);
            this.#calls.set(id, { resolve, reject, timer });
            const message = { id, text: JSON.stringify({ jsonrpc: "2.0", id, method, params }) };
            if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(message.text);
            else this.#unsent.push(message);
        });
    }

    /// Listens as long as the page lives, across reconnects. `begin` is called each time the subscription begins anew.
    subscribe(method, params, onNews, onBegin = () => {}) {
        const subscription = { method, params, onNews, onBegin, id: null };
        this.#subscriptions.push(subscription);
        if (this.#socket?.readyState === WebSocket.OPEN) this.#begin(subscription);
    }

    /// Begins a subscription, again and again if the node refuses it: without news the page would stand still.
    async #begin(subscription) {
        const socket = this.#socket;
        const what = `news of ${subscription.params[0]}`;
        const isWanted = () => socket === this.#socket && socket.readyState === WebSocket.OPEN && !subscription.isMissing;
        const onError = (error) => {
            subscription.isMissing = error.code === NO_METHOD;
            this.#onProblem(what, error);
        };
        const id = await untilDone(() => this.call(subscription.method, ...subscription.params), { isWanted, onError });
        if (id === undefined) return;
        subscription.id = id;
        this.#onProblem(what, null);
        subscription.onBegin();
    }

    #connect() {
        const socket = new WebSocket(this.#url);
        this.#socket = socket;
        socket.onopen = () => {
            this.#openedAt = Date.now();
            this.#onStatus("live");
            for (const message of this.#unsent.splice(0)) socket.send(message.text);
            for (const subscription of this.#subscriptions) this.#begin(subscription);
        };
        socket.onmessage = ({ data }) => this.#receive(JSON.parse(data));
        socket.onclose = () => this.#retry();
    }

    #retry() {
        for (const subscription of this.#subscriptions) subscription.id = null;
        // What was sent and not answered may have been done: it is not sent again.
        const unsent = new Set(this.#unsent.map((message) => message.id));
        for (const [id, { reject, timer }] of this.#calls) {
            if (unsent.has(id)) continue;
            clearTimeout(timer);
            this.#calls.delete(id);
            reject(new Unreached("the connection to the node broke"));
        }
        this.#onStatus("offline");
        if (this.#openedAt !== null && Date.now() - this.#openedAt >= LIFE_MS_MIN) this.#failures = 0;
        this.#openedAt = null;
        const wait = RETRY_MS[Math.min(this.#failures++, RETRY_MS.length - 1)];
        // All pages lose a node at the same moment: they do not come back at the same moment.
        setTimeout(() => this.#connect(), wait * (0.75 + Math.random() / 2));
    }

    #receive(message) {
        if (message.method) {
            const { subscription: id, result, error } = message.params ?? {};
            const subscription = this.#subscriptions.find((known) => known.id === id);
            if (error && subscription) this.#begin(subscription);
            else if (result !== undefined) subscription?.onNews(result);
            return;
        }
        const call = this.#calls.get(message.id);
        if (!call) return;
        this.#calls.delete(message.id);
        clearTimeout(call.timer);
        if (message.error) call.reject(new RpcError(message.error));
        else call.resolve(message.result);
    }
}

/// Where the node is: the page's own address, or what Vite's server passes on.
export function nodeUrl() {
    const { protocol, host } = window.location;
    const path = import.meta.env.DEV ? "/rpc" : "/";
    return `${protocol === "https:" ? "wss" : "ws"}://${host}${path}`;
}
