export { Client, type ClientOptions } from "./Client.ts"
export { type ErrorCode, TidegateError } from "./TidegateError.ts"
export { verify, WebhookVerificationError, type Verified, type WebhookHeaders } from "./verify.ts"
export type { components, operations, paths } from "./schema.ts"
