import { of, row, type Section, shape, tests } from "./Facts.ts"

const api = tests("packages/api/test/ProviderAccounts.test.ts")
const calls = tests("packages/entities/test/ProviderCalls.test.ts")

const consent = api("A consent connects an account, with PKCE and without showing a secret")
const credentials = api("Credentials connect an account when the provider accepts them")
const faults = api("A body that cannot connect anything names all faults")
const refused = api("A refused consent connects nothing")
const once = api("A state is used once, and a repeated callback returns the same account")
const caller = api("Only the session or key that began a consent may end it")
const revocation = api("A revocation ends the subscriptions, the token at the provider and the credentials, once")
const again = api("A revoked account that is connected again keeps its id, its name and its sources")
const catalog = api("The catalog of source providers is made from their rows, and has an ETag")

export const providerAccounts: Section = {
  title: "Provider accounts and the catalog of source providers",
  endpoints: [
    row("GET /provider-accounts", api("A list has pages, and shows the accounts of its team only")),
    row("GET /provider-accounts/{id}; POST /provider-accounts/oauth/start", consent),
    row("POST /provider-accounts/oauth/callback", once),
    row("POST /provider-accounts/credentials/connect", credentials),
    row("DELETE /provider-accounts/{id}", revocation),
    row("GET /source-providers", catalog)
  ],
  fields: {
    ProviderAccount: [of("*", consent)],
    ProviderAccountConsentStarted: [of("*", consent)],
    ProviderAccountConsentWrite: [
      of("provider_key base_url", faults),
      of("name scopes client_id client_secret token_auth_method redirect_uri", consent),
      of("account_id", again)
    ],
    ProviderAccountConsentBack: [of("state code", once), of("error", refused)],
    ProviderAccountCredentialsWrite: [
      of("provider_key base_url credentials", faults),
      of("name", credentials),
      of("account_id", again)
    ],
    ProviderAccountRevoked: [of("*", revocation)],
    SourceProviders: [of("*", shape)],
    SourceProvider: [of("*", shape)],
    SourceProviderAuth: [of("*", shape)],
    SourceCredentialField: [of("*", shape)],
    SourceDefinition: [of("*", shape)]
  },
  states: [
    row("a consent belongs to the caller that began it", caller),
    row(
      "a browser confirms before an account is connected",
      api("A browser that comes back shows whose account it becomes, and connects it after a confirmation")
    ),
    row("a revoked account that is connected again keeps its id", again),
    row(
      "one process at a time refreshes a token",
      calls("Two processes that need a new token at the same time ask the provider once")
    ),
    row(
      "credentials are sent to the account's origin only",
      calls("Credentials are sent to the account's origin only, and to no place that it redirects to")
    )
  ],
  limits: [
    row(
      "200 accounts of a team that are not revoked",
      api("A team can have as many accounts as its limit says, without revoked ones")
    )
  ]
}
