import { authType, nothing } from "./OutboundAuthType.ts"

/** Deliveries have no authentication. An `auth_type` of null means the same. */
export const noAuth = authType({ type: "NO_AUTH", settings: {}, aliases: {}, readable: [], compile: () => nothing })
