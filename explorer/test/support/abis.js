// What the build makes of our contracts, for tests.
export { default } from "virtual:abi";
