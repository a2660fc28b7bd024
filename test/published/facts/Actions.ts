import { of, row, type Section, shape, tests } from "./Facts.ts"

const api = tests("packages/api/test/Actions.test.ts")
const rows = tests("packages/actions/test/Providers.test.ts")
const refusing = tests("test/contract/RefusingTargets.test.ts")

const life = api("Action can be created, read, changed, disabled and deleted under ${prefix}/actions")
const wrong = api("Refused action reports every fault and repeats no credential")
const sealed = api("Credentials of an action are stored encrypted, and only its calls can read them")
const choices = api("Options for action inputs come in pages and belong to the caller's team alone")
const named = api("Action in use by a workflow cannot be deleted, and runs keep the version that they started with")

const config = [
  of("auth_mode credentials", sealed),
  of("provider_account_id rate_limit_period", wrong),
  of("inputs rate_limit", life)
]
const written = [of("name provider_key action_key", wrong), of("status config config.*", life), ...config]

export const actions: Section = {
  title: "Actions",
  endpoints: [
    row("GET /actions", life),
    row(
      "POST,PUT /actions; GET,PUT,PATCH,DELETE /actions/{id}; PUT,POST /actions/{id}/disable; PUT,POST /actions/{id}/enable",
      life
    ),
    row(
      "GET /action-providers",
      api("Action catalog lists every provider and is not sent again to a caller that has it")
    ),
    row("POST /action-options", choices)
  ],
  fields: {
    Action: [
      of("type status disabled_at config", life),
      of(
        "held_until",
        api("Pause time of an action's target is shown as held_until and ends when the action is changed")
      ),
      of("workflow_steps_count", named)
    ],
    ActionConfig: [of("*", life)],
    ActionWrite: written,
    ActionPatch: written,
    ActionProviders: [of("*", shape)],
    ActionProvider: [of("*", shape)],
    ActionProviderAuth: [of("*", shape)],
    ActionCredentialField: [of("*", shape)],
    CatalogAction: [
      of("input_schema output_schema input_sample output_sample", rows("Samples of an action match its own schemas"))
    ],
    ActionOptionsInput: [
      of(
        "provider_key resource auth_mode provider_account_id action_id credentials query cursor limit dependencies",
        choices
      )
    ],
    ActionChoices: [of("models next_cursor", choices)],
    ActionChoice: [of("id name description", choices)]
  },
  states: [
    row(
      "an action names a connected account of its provider",
      tests("packages/api/test/ProviderAccounts.test.ts")(
        "An action names a connected account of its provider, and its choices come from that account"
      )
    ),
    row(
      "a step of a revoked account fails for good",
      tests("packages/entities/test/ProviderCalls.test.ts")(
        "A step of a revoked or refused account fails for good, and says what to do"
      )
    ),
    row("a saved action that a step names cannot be deleted", named),
    row(
      "a target that refuses for now holds its action",
      refusing("A refused step holds its action in all runs and processes until the action is changed")
    ),
    row(
      "runs come through a window of a few calls",
      refusing("No run is lost at a saved action that accepts few calls at a time, even with only one retry")
    )
  ],
  limits: [
    row(
      "1,000 actions of a team",
      tests("packages/api/test/TeamLimits.test.ts")(
        "Limit on ${plural} holds for every way to create them, also when the last ones are created at the same time"
      )
    ),
    row("the last hundred of what one was", api("Versions of an action are limited to the last hundred"))
  ]
}
