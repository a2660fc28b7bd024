/** The provider comes without types; what is used of it. */
declare module "oidc-provider" {
  import type { RequestListener } from "node:http"
  export class Provider {
    constructor(issuer: string, configuration: object)
    callback(): RequestListener
  }
  export default Provider
}
