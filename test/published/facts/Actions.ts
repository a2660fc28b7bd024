import { of, row, type Section, shape, tests } from "./Facts.ts"

const api = tests("packages/api/test/Actions.test.ts")
const rows = tests("packages/actions/test/Providers.test.ts")
const refusing = tests("test/contract/RefusingTargets.test.ts")

const life = api("the life of one of ${prefix}/actions")
const wrong = api("all that is wrong with one is told, and no credential with it")
const sealed = api("credentials are sealed, and read back by nobody but the call")
const choices = api("what inputs can be chosen from comes in pages, of this team alone")
const named = api("a step may name one, which then cannot be deleted, and runs keep what it was")

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
    row("GET /action-providers", api("the catalog has every provider, and is not sent twice")),
    row("POST /action-options", choices)
  ],
  fields: {
    Action: [
      of("type status disabled_at config", life),
      of("held_until", api("until when a target takes nothing more is shown, and lifted by a change of the action")),
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
      of("input_schema output_schema input_sample output_sample", rows("has samples that its own schemas take"))
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
        "${plural}: as many as they may be, however they are made, and also when the last ones are made at once"
      )
    ),
    row(
      "the last hundred of what one was",
      api("of what one was, the last hundred are kept, however often it is saved")
    )
  ]
}
