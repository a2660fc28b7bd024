import { of, row, type Section, tests } from "./Facts.ts"

const versions = tests("packages/api/test/WorkflowVersions.test.ts")

const listed = versions("Versions of a workflow are listed in pages, shown and compared by the ids of steps and edges")
const stepped = versions("One step of a workflow is changed and removed by its id, and a chain closes again")
const drafted = versions("A draft is written, tested, tried with stored requests and published beside the live version")

const cloned = versions("A workflow is copied as a draft with its definition, triggers and run label")

export const workflowChanges: Section = {
  title: "Versions, steps and drafts of workflows",
  endpoints: [
    row("GET /workflows/{id}/versions; GET /workflows/{id}/versions/{version}", listed),
    row("GET /workflows/{id}/versions/{version}/compare; POST /workflows/{id}/versions/{version}/restore", listed),
    row("POST /workflows/{id}/clone", cloned),
    row("PATCH /workflows/{id}/steps/{stepId}; DELETE /workflows/{id}/steps/{stepId}", stepped),
    row("GET /workflows/{id}/draft; PUT /workflows/{id}/draft; DELETE /workflows/{id}/draft", drafted),
    row("POST /workflows/{id}/draft/publish; POST /workflows/{id}/draft/check", drafted)
  ],
  fields: {
    "WorkflowVersion WorkflowVersionDetail": [],
    WorkflowVersionList: [],
    WorkflowVersionRestore: [of("version", listed)],
    "WorkflowComparison WorkflowPartChanges WorkflowChangedMember": [],
    WorkflowClone: [of("name source_id", cloned)],
    WorkflowStepPatch: [of("name config version resource_id action invocation_inputs position", stepped)],
    WorkflowDraft: [of("warnings", drafted)],
    WorkflowDraftWrite: [of("steps edges run_label version", drafted)],
    WorkflowDraftPublish: [of("version", drafted)],
    WorkflowDraftCheckInput: [of("limit", drafted)],
    "WorkflowDraftCheck WorkflowDraftOutcome": []
  },
  states: [row("no run uses a draft before it is published", drafted)],
  limits: [
    row(
      "the last 50 versions are kept",
      tests("packages/storage/test/RetentionRuns.test.ts")(
        "A workflow that is saved all day keeps its last 50 versions and those that were used"
      )
    ),
    row("a check of a draft: 100 requests, 60 seconds, 64 MiB", drafted)
  ]
}
