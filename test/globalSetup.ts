/** Suites bring what they need themselves; what is shared by all of them is set up here, once. */
export default function setup(): void {}
