// Writes src/abis.ts from contracts/artifacts, as constants: viem takes types of calls from constants only.
// `node clients/ts/abis.mjs --check` only says whether the file is current.

import fs from "node:fs";

const at = (path) => new URL(path, import.meta.url);
const interfaces = {
    cronAbi: "ICronRegistry",
    marketAbi: "IScheduledTransactions",
    callbacksAbi: "ICallbackScheduler",
    accountsAbi: "IAccounts",
    signedAbi: "IScheduleService",
    parametersAbi: "IParameters",
};
const parts = Object.entries(interfaces).map(([name, contract]) => {
    const { abi } = JSON.parse(fs.readFileSync(at(`../../contracts/artifacts/${contract}.json`), "utf8"));
    return `/** ABI of contracts/${contract}.sol. */\nexport const ${name} = ${JSON.stringify(abi, null, 1)} as const;\n`;
});
const text = `// Written by clients/ts/abis.mjs from contracts/artifacts. Do not edit.\n\n${parts.join("\n")}`;
const file = at("src/abis.ts");
if (process.argv[2] !== "--check") fs.writeFileSync(file, text);
else if (fs.readFileSync(file, "utf8") !== text) throw new Error("clients/ts/src/abis.ts is old: node clients/ts/abis.mjs");
