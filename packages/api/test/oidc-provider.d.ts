/** The provider comes without types; what is used of it. */
declare module "oidc-provider" {
  import type { RequestListener } from "node:http"
  interface Tokens {
    find(value: string): Promise<{ destroy(): Promise<void> } | undefined>
  }
  export class Provider {
    constructor(issuer: string, configuration: object)
    readonly AccessToken: Tokens
    readonly ClientCredentials: Tokens
    callback(): RequestListener
  }
  export default Provider
}
