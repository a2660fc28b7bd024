import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { generateKeyPairSync } from "node:crypto"
import { decodeJwt, importSPKI, jwtVerify } from "jose"
import { Provider } from "oidc-provider"
import { Browser } from "./Browser.ts"

/** A real token provider on its own port, with client secrets, users who consent to everything, and rotating refresh tokens. */

/** The default redirect URI of users. */
export const redirectUri = "https://operator.example/callback"

export const clientOf = (method: "client_secret_basic" | "client_secret_post") => ({
  // With characters that form encoding changes, so that the encoding in basic authentication is tested, too.
  client_id: `gateway ${method}`,
  client_secret: `s3cret: of +${method}/%20`,
  token_auth_method: method
})

const accountKey = generateKeyPairSync("rsa", { modulusLength: 2048 })

/** The key file of a service account, as a provider's console issues it. */
export const accountFile = (tokenUri: string) => ({
  type: "service_account",
  private_key_id: "key-1",
  private_key: accountKey.privateKey.export({ type: "pkcs8", format: "pem" }),
  client_email: "gateway@project.example",
  token_uri: tokenUri
})

/** One call of the token endpoint. */
export interface TokenCall {
  readonly authorization: string | null
  readonly form: Readonly<Record<string, string>>
}

export interface Given {
  readonly access_token: string
  readonly refresh_token?: string
  readonly scope?: string
}

export interface TokenProviderOptions {
  /** Lifetime of access tokens in seconds. Default: 3,600. */
  readonly life?: number
  /** Further redirect URIs. */
  readonly redirectUris?: ReadonlyArray<string>
}

export class TokenProvider {
  readonly issuer: string
  readonly calls: Array<TokenCall> = []
  /** The answers with tokens that it has issued, in order. */
  readonly given: Array<{ readonly access_token: string; readonly refresh_token?: string; readonly scope?: string }> =
    []
  /** Answers calls of the token endpoint instead of the provider; null: the provider answers. */
  instead: RequestListener | null = null
  #provider: Provider
  readonly #server: Server

  private constructor(server: Server, { life = 3600, redirectUris = [] }: TokenProviderOptions) {
    this.#server = server
    this.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const client = (method: "client_secret_basic" | "client_secret_post") => {
      const { client_id, client_secret } = clientOf(method)
      return {
        client_id,
        client_secret,
        token_endpoint_auth_method: method,
        redirect_uris: [redirectUri, ...redirectUris],
        response_types: ["code"],
        grant_types: ["authorization_code", "refresh_token", "client_credentials"],
        scope: "openid offline_access events:write"
      }
    }
    this.#provider = new Provider(this.issuer, {
      clients: [client("client_secret_basic"), client("client_secret_post")],
      scopes: ["openid", "offline_access", "events:write"],
      features: { clientCredentials: { enabled: true }, revocation: { enabled: true } },
      pkce: { required: () => true },
      rotateRefreshToken: true,
      ttl: { AccessToken: life, ClientCredentials: life, RefreshToken: 86_400 },
      cookies: { keys: ["a key of the test"] },
      conformIdTokenClaims: false,
      findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) })
    })
    const answer = this.#provider.callback()
    server.on("request", (request, response) => {
      if (request.method !== "POST" || !/^\/token(?:\?|$)/.test(request.url!)) {
        answer(request, response)
        return
      }
      const answered = (body: string): void => {
        const form = Object.fromEntries(new URLSearchParams(body))
        this.calls.push({ authorization: request.headers.authorization ?? null, form })
        if (this.instead !== null) {
          this.instead(request, response)
          return
        }
        if (form["grant_type"]?.endsWith("jwt-bearer") === true) {
          void this.#assert(form["assertion"] ?? "", response)
          return
        }
        // The provider uses this body, because the stream has been read already.
        Object.assign(request, { body })
        const end = response.end.bind(response) as (chunk?: unknown) => typeof response
        response.end = ((chunk?: unknown) => {
          if (response.statusCode === 200) this.given.push(JSON.parse(String(chunk)) as Given)
          return end(chunk)
        }) as typeof response.end
        answer(request, response)
      }
      // A gateway that is killed amid its request gets nothing.
      bodyOf(request).then(answered, () => void response.destroy())
    })
  }

  static async start(options: TokenProviderOptions = {}): Promise<TokenProvider> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return new TokenProvider(server, options)
  }

  get tokenUrl(): string {
    return `${this.issuer}/token`
  }

  get authorizationUrl(): string {
    return `${this.issuer}/auth`
  }

  /** Whether the token is valid: neither revoked nor expired. */
  async knows(token: string): Promise<boolean> {
    const { AccessToken, ClientCredentials } = this.#provider
    return (await AccessToken.find(token)) !== undefined || (await ClientCredentials.find(token)) !== undefined
  }

  /** Makes the token invalid. */
  async forget(token: string): Promise<void> {
    const { AccessToken, ClientCredentials } = this.#provider
    await ((await AccessToken.find(token)) ?? (await ClientCredentials.find(token)))?.destroy()
  }

  /** Checks the signature of a service account, as a provider does. */
  async #assert(assertion: string, response: ServerResponse): Promise<void> {
    try {
      const key = await importSPKI(accountKey.publicKey.export({ type: "spki", format: "pem" }), "RS256")
      await jwtVerify(assertion, key, {
        issuer: "gateway@project.example",
        audience: this.tokenUrl,
        algorithms: ["RS256"]
      })
      const scope = decodeJwt(assertion)["scope"] as string | undefined
      const token = { access_token: `account-token-${this.given.length}`, token_type: "Bearer", expires_in: 3599 }
      this.given.push(scope === undefined ? token : { ...token, scope })
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(token))
    } catch {
      response.writeHead(400, { "content-type": "application/json" }).end('{"error":"invalid_grant"}')
    }
  }

  /**
   * Follows a browser redirect, signs in as `login` and consents. Returns the URL outside of the provider, without calling it.
   */
  consent(url: string, login: string): Promise<URL> {
    return new Browser().consent(this.issuer, url, login)
  }

  close(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
