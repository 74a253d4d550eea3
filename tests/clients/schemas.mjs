// Schemas of results. Most come from npm's copy of Ethereum's specification (execution-apis, in @metamask/api-specs),
// which is from before Prague and leaves some methods out; what came later is added here.

import { createRequire } from "node:module";
import Ajv2020 from "ajv/dist/2020.js";
import { isAlmanac } from "./check.mjs";

const require = createRequire(import.meta.url);
const specification = structuredClone(require("@metamask/api-specs/dist/build/openrpc.json"));
const { schemas } = specification.components;
const named = (name) => ({ $ref: `#/components/schemas/${name}` });
const list = (items) => ({ type: "array", items });
const orNull = (schema) => ({ oneOf: [{ type: "null" }, schema] });

addPrague();
addBlockTimestamps();
// An empty list is both a list of hashes and a list of logs.
schemas.FilterResults = { anyOf: schemas.FilterResults.oneOf };
addOwnFields(isAlmanac ? { Block: ["timestampMs"] } : { Block: ["totalDifficulty"], ReceiptInfo: ["blockTimestamp"] });
const results = { ...publishedResults(), ...laterResults() };
const ajv = new Ajv2020({ strict: false, allErrors: false });
ajv.addSchema({ $id: "ethereum", components: specification.components });

/** Every method with a schema here. */
export const known = Object.keys(results);

/** A function from a result of `method` to what is wrong with it, or "". */
export function validator(method) {
    const schema = results[method];
    if (!schema) throw new Error(`no schema for the result of ${method}`);
    const validate = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"ethereum#/')));
    return (value) => (validate(value) ? "" : validate.errors.map(problem).join(", "));
}

function problem({ instancePath, message, params }) {
    return `${instancePath || "/"} ${message}${params.additionalProperty ? ` (${params.additionalProperty})` : ""}`;
}

/** Requests in the header (EIP-7685) and transactions that set code (EIP-7702). */
function addPrague() {
    schemas.Block.properties.requestsHash = named("hash32");
    const authorization = {
        type: "object",
        required: ["chainId", "address", "nonce", "yParity", "r", "s"],
        properties: {
            chainId: named("uint"),
            address: named("address"),
            nonce: named("uint"),
            yParity: named("uint"),
            r: named("uint"),
            s: named("uint"),
        },
    };
    const dynamicFee = schemas.Transaction1559Signed;
    const unsigned = structuredClone(schemas.Transaction1559Unsigned);
    unsigned.properties.type.pattern = "^0x4$";
    unsigned.properties.authorizationList = list(authorization);
    unsigned.required = [...unsigned.required, "authorizationList", "to"];
    schemas.Transaction7702Signed = { type: "object", allOf: [unsigned, dynamicFee.allOf[1]] };
    schemas.TransactionSigned.oneOf.push(named("Transaction7702Signed"));
}

/** Logs, and transactions in blocks, say when their block was made. */
function addBlockTimestamps() {
    schemas.Log.properties.blockTimestamp = named("uint");
    const [context] = schemas.TransactionInfo.allOf;
    // The fields of a transaction are evaluated by its sibling, which this keyword does not see.
    delete context.unevaluatedProperties;
    context.properties.blockTimestamp = named("uint");
}

/** Fields that a node adds and that the specification does not know. */
function addOwnFields(byType) {
    for (const [type, fields] of Object.entries(byType)) {
        for (const field of fields) schemas[type].properties[field] = {};
    }
}

function publishedResults() {
    const methods = specification.methods.filter(({ name }) => name.startsWith("eth_"));
    return Object.fromEntries(methods.map(({ name, result }) => [name, result.schema]));
}

function laterResults() {
    const accessList = {
        type: "object",
        required: ["accessList", "gasUsed"],
        additionalProperties: false,
        properties: { accessList: named("AccessList"), gasUsed: named("uint"), error: { type: "string" } },
    };
    const simulatedCall = {
        type: "object",
        required: ["status", "returnData", "gasUsed", "logs"],
        properties: {
            status: { enum: ["0x0", "0x1"] },
            returnData: named("bytes"),
            gasUsed: named("uint"),
            maxUsedGas: named("uint"),
            logs: list(named("Log")),
            error: {
                type: "object",
                required: ["code", "message"],
                properties: { code: { type: "integer" }, message: { type: "string" }, data: named("bytes") },
            },
        },
    };
    const simulatedBlock = structuredClone(schemas.Block);
    simulatedBlock.properties.calls = list(simulatedCall);
    // anvil 1.7.1 leaves the size out.
    simulatedBlock.required = [
        ...simulatedBlock.required.filter((field) => isAlmanac || field !== "size"),
        "calls",
    ];
    const filled = {
        type: "object",
        required: ["raw", "tx"],
        properties: { raw: named("bytes"), tx: { type: "object" } },
    };
    const account = {
        type: "object",
        required: ["balance", "nonce", "code"],
        properties: { balance: named("uint"), nonce: named("uint"), code: named("bytes") },
    };
    return {
        eth_blobBaseFee: named("uint"),
        eth_createAccessList: accessList,
        eth_fillTransaction: filled,
        eth_getAccountInfo: account,
        eth_getBlockReceipts: orNull(list(named("ReceiptInfo"))),
        eth_getRawTransactionByBlockHashAndIndex: named("bytes"),
        eth_getRawTransactionByBlockNumberAndIndex: named("bytes"),
        eth_getRawTransactionByHash: named("bytes"),
        eth_getTransactionBySenderAndNonce: orNull(named("TransactionInfo")),
        eth_getUncleByBlockHashAndIndex: { type: "null" },
        eth_getUncleByBlockNumberAndIndex: { type: "null" },
        eth_hashrate: named("uint"),
        eth_maxPriorityFeePerGas: named("uint"),
        eth_mining: { type: "boolean" },
        eth_protocolVersion: {},
        eth_sendRawTransactionSync: named("ReceiptInfo"),
        eth_sendTransactionSync: named("ReceiptInfo"),
        eth_sign: named("bytes65"),
        // Bytes in the specification; geth gives the transaction along with them.
        eth_signTransaction: { anyOf: [named("bytes"), filled] },
        eth_signTypedData_v4: named("bytes65"),
        eth_simulateV1: list(simulatedBlock),
    };
}
