import { createHash, randomBytes } from "node:crypto"
import { createServer, type RequestListener, type Server } from "node:http"
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose"
import { Provider } from "oidc-provider"
import { Browser } from "../../../test/support/Browser.ts"

/** A real provider of OpenID Connect on a port of its own, whose users are whoever they say they are. */

export const audience = "tidegate-test"
/** The client that a gateway's dashboard is. */
export const dashboard = { id: "tidegate-dashboard", secret: "a secret of the test & +:%" }
const redirect = "https://client.example/callback"

type Claims = Readonly<Record<string, unknown>>

export class OpenIdProvider {
  readonly issuer: string
  /** How often its keys were asked for. */
  asked = 0
  #answer: RequestListener = () => {}
  #key: { readonly jwk: JWK; readonly sign: CryptoKey } | null = null
  readonly #server: Server
  readonly #people: Record<string, Claims>
  #dashboards: ReadonlyArray<object> = []

  private constructor(server: Server, port: number, people: Record<string, Claims>) {
    this.#server = server
    this.issuer = `http://127.0.0.1:${port}`
    this.#people = people
    server.on("request", (request, response) => {
      if (request.url?.startsWith("/jwks") === true) this.asked++
      this.#answer(request, response)
    })
  }

  static async start(people: Record<string, Claims>): Promise<OpenIdProvider> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const address = server.address()
    const provider = new OpenIdProvider(server, typeof address === "object" ? address!.port : 0, people)
    await provider.rotate()
    return provider
  }

  close(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  /** From now on it signs with a new key, and has no other. */
  async rotate(): Promise<void> {
    const { privateKey } = await generateKeyPair("RS256", { extractable: true })
    const jwk = { ...(await exportJWK(privateKey)), kid: randomBytes(4).toString("hex"), alg: "RS256", use: "sig" }
    this.#key = { jwk, sign: privateKey }
    this.#configure()
  }

  /** From now on it is itself, and knows a dashboard, to which it sends people back. */
  register(callback: string): void {
    const { id, secret } = dashboard
    this.#dashboards = [
      {
        client_id: id,
        client_secret: secret,
        redirect_uris: [callback],
        response_types: ["code"],
        grant_types: ["authorization_code"]
      }
    ]
    this.#configure()
  }

  #configure(): void {
    const provider = new Provider(this.issuer, {
      jwks: { keys: [this.#key!.jwk] },
      clients: [
        {
          client_id: audience,
          redirect_uris: [redirect],
          response_types: ["code"],
          grant_types: ["authorization_code"],
          token_endpoint_auth_method: "none"
        },
        ...this.#dashboards
      ],
      cookies: { keys: ["a key of the test"] },
      conformIdTokenClaims: false,
      claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "picture"] },
      findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id, ...this.#people[id] }) })
    })
    this.#answer = provider.callback()
  }

  /** What it answers instead of itself. */
  answerWith(answer: RequestListener): void {
    this.#answer = answer
  }

  /** A token that only it can sign, with claims of which some may be wrong. */
  sign(claims: Claims, header: Claims = {}): Promise<string> {
    const now = Math.floor(Date.now() / 1000)
    const { jwk, sign } = this.#key!
    return new SignJWT({ iss: this.issuer, aud: audience, sub: "ada", iat: now, exp: now + 60, ...claims })
      .setProtectedHeader({ alg: "RS256", kid: jwk.kid!, ...header })
      .sign(sign)
  }

  /** The ID token of somebody, got as a browser and a client get it: by the code flow, with a login and a consent. */
  async idToken(login: string, nonce: string): Promise<string> {
    const browser = new Browser()
    const verifier = randomBytes(32).toString("base64url")
    const asked = new URLSearchParams({
      client_id: audience,
      redirect_uri: redirect,
      response_type: "code",
      scope: "openid email profile",
      nonce,
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256"
    })
    const back = await browser.consent(this.issuer, `${this.issuer}/auth?${asked.toString()}`, login)
    const answer = await browser.call(`${this.issuer}/token`, {
      grant_type: "authorization_code",
      client_id: audience,
      redirect_uri: redirect,
      code: back.searchParams.get("code") ?? "",
      code_verifier: verifier
    })
    return ((await answer.json()) as { readonly id_token: string }).id_token
  }
}
