// The project that hardhat.mjs builds; its contracts come from contracts/.

import { createRequire } from "node:module";
import helpers from "@nomicfoundation/hardhat-network-helpers";
import viem from "@nomicfoundation/hardhat-viem";

const require = createRequire(import.meta.url);

export default {
    plugins: [viem, helpers],
    solidity: {
        version: "0.8.37",
        path: require.resolve("solc/soljson.js"),
        settings: { evmVersion: "osaka", optimizer: { enabled: true, runs: 200 } },
    },
    networks: {
        inProcess: { type: "edr-simulated", chainType: "l1" },
        chain: { type: "http", chainType: "l1", url: process.env.CLIENT_TEST_URL },
    },
};
