import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { administering, notByProjectKeys, reading } from "@tidegate/model/Permission"
import { AccountConsentStarted, AccountRevoked, ProviderAccount } from "@tidegate/model/ProviderAccount"
import { consentBackBody, consentBody, credentialsBody } from "@tidegate/resources/ProviderAccountInput"
import { Authorization } from "../contract/Authorization.ts"
import { accountConsentStarted, accountRevoked, ids, providerAccount } from "../contract/Examples.ts"
import * as Lists from "../contract/Lists.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const one = {
  params: Parameters.pathOf("provider account", ids.providerAccount),
  query: Parameters.onlyTeam
}

/** Accounts at providers, with which sources and actions call them. */
export class ProviderAccountsApi extends HttpApiGroup.make("provider-accounts")
  .add(
    HttpApiEndpoint.get("list", "/provider-accounts", {
      query: Lists.providerAccounts.query,
      success: Lists.providerAccounts.answer(ProviderAccount)
    }).annotateMerge(
      operation({
        id: "listProviderAccounts",
        permission: notByProjectKeys(reading),
        summary: "List the accounts of the team, newest first",
        description: "Returns revoked accounts, too: they can be connected again.",
        answer: Lists.providerAccounts.example(providerAccount),
        errors: ["INVALID_CURSOR"]
      })
    ),
    HttpApiEndpoint.get("retrieve", "/provider-accounts/:id", { ...one, success: ProviderAccount }).annotateMerge(
      operation({
        id: "getProviderAccount",
        permission: notByProjectKeys(reading),
        summary: "Retrieve an account",
        description: "Returns its state and what uses it, without its credentials.",
        answer: providerAccount,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.post("startConsent", "/provider-accounts/oauth/start", {
      query: Parameters.onlyTeam,
      payload: consentBody.described,
      success: AccountConsentStarted
    }).annotateMerge(
      operation({
        id: "startProviderAccountConsent",
        permission: administering,
        summary: "Start the consent to an account",
        description:
          "Returns the URL where a person consents. The consent is valid for ten minutes and can be used once. Over the API, only the session or key that started it can end it. With `account_id` the account is connected again and keeps its id.",
        body: {
          provider_key: "git_host",
          client_id: "the-id-of-your-client",
          client_secret: "the-secret-of-your-client"
        },
        answer: accountConsentStarted,
        errors: ["NOT_FOUND", "LIMIT_EXCEEDED"]
      })
    ),
    HttpApiEndpoint.post("endConsent", "/provider-accounts/oauth/callback", {
      query: Parameters.onlyTeam,
      payload: consentBackBody.described,
      success: ProviderAccount
    }).annotateMerge(
      operation({
        id: "endProviderAccountConsent",
        permission: administering,
        summary: "End the consent to an account",
        description:
          "Exchanges the code for tokens, and connects the account. For a consent with a `redirect_uri` of your own. Otherwise the provider redirects the browser to `GET /oauth/callback`, where the person confirms.",
        body: { state: accountConsentStarted.state, code: "the-code-of-the-provider" },
        answer: providerAccount,
        errors: ["OAUTH2_STATE_INVALID", "OAUTH2_HANDSHAKE_FAILED", "NOT_FOUND", "LIMIT_EXCEEDED"]
      })
    ),
    HttpApiEndpoint.post("connect", "/provider-accounts/credentials/connect", {
      query: Parameters.onlyTeam,
      payload: credentialsBody.described,
      success: ProviderAccount
    }).annotateMerge(
      operation({
        id: "connectProviderAccount",
        permission: administering,
        summary: "Connect an account by its credentials",
        description:
          "`GET /source-providers` lists the credential fields of each provider. The provider checks the credentials first. With `account_id` the account is connected again and keeps its id.",
        body: { provider_key: "git_host", name: "ci", credentials: { token: "a-token-of-the-git-host" } },
        answer: {
          ...providerAccount,
          name: "ci",
          scopes: [],
          account_kind: "service",
          connection: "api_key",
          token_expires_at: null,
          lifecycle: { ...providerAccount.lifecycle, reconnect_mode: "credentials" },
          usage: { sources: 0, actions: 0, workflows: 0, lookups: 0, total: 0 },
          used_by: []
        },
        errors: ["NOT_FOUND", "LIMIT_EXCEEDED", "PROVIDER_REFUSED", "PROVIDER_FAILED"]
      })
    ),
    HttpApiEndpoint.delete("revoke", "/provider-accounts/:id", { ...one, success: AccountRevoked }).annotateMerge(
      operation({
        id: "revokeProviderAccount",
        permission: administering,
        summary: "Revoke an account",
        description:
          "Ends the account's subscriptions at the provider, revokes its token there if the provider can do that, and deletes its credentials. Its sources stay, and receive nothing until it is connected again. A repetition changes nothing and returns the same answer.",
        answer: accountRevoked,
        errors: ["NOT_FOUND"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Provider accounts",
      description: "Accounts at providers, with which sources and actions call them."
    })
  ) {}
