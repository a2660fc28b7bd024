import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { SourceProvider } from "@tidegate/channels/SourceProvider"
import { providerRow } from "../../channels/test/providerRow.ts"
import { TokenProvider, type TokenProviderOptions } from "../../../test/support/TokenProvider.ts"

/** A call of the provider's API. */
export interface ApiCall {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage["headers"]
}

/**
 * A provider of sources for tests: a real OAuth server, and an API on another port that accepts its tokens and one API key. The
 * row that declares it has paths of the account's origin for the API, and absolute URLs for OAuth.
 */
export class AccountProvider {
  readonly calls: Array<ApiCall> = []
  /** Answers calls of the API instead of the provider; null: the provider answers. */
  instead: ((request: IncomingMessage, response: ServerResponse) => void) | null = null

  readonly oauth: TokenProvider
  readonly api: string
  readonly close: () => Promise<unknown>

  private constructor(oauth: TokenProvider, api: string, close: () => Promise<unknown>) {
    this.oauth = oauth
    this.api = api
    this.close = close
  }

  static readonly key = "an-api-key-of-the-test"

  static async start(options: TokenProviderOptions = {}): Promise<AccountProvider> {
    const oauth = await TokenProvider.start(options)
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const close = () => {
      server.closeAllConnections()
      return Promise.all([oauth.close(), new Promise<void>((resolve) => server.close(() => resolve()))])
    }
    const provider = new AccountProvider(oauth, `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close)
    server.on("request", (request, response) => void provider.#answer(request, response))
    return provider
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.calls.push({ method: request.method!, path: request.url!, headers: request.headers })
    if (this.instead !== null) return this.instead(request, response)
    const token = request.headers.authorization?.replace(/^Bearer /, "") ?? ""
    const isKnown = token === AccountProvider.key || (await this.oauth.knows(token))
    response
      .writeHead(isKnown ? 200 : 401, { "content-type": "application/json" })
      .end(
        isKnown
          ? '{"id":90071992547409931,"login":"ada","email":"ada@example.com"}'
          : `{"error":"no access with ${token}"}`
      )
  }

  /** The row that declares it. */
  row(): SourceProvider {
    return providerRow(this.api, this.oauth.issuer)
  }
}
