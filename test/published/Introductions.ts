/** What a page of `docs/api/` says before its calls, by its tag: how the calls play together, and where more is told. */
export const introductions: Readonly<Record<string, string>> = {
  Sources:
    "A source has a URL that senders post to, and says who may. Guide: [sources](../sources.md), [providers](../providers.md). `PUT /sources` creates or updates by name, so a script that sets things up can run again and again.",
  Destinations:
    "A destination says where events go, how fast, and how the gateway shows who it is. Guide: [destinations](../destinations.md).",
  Connections:
    "A connection sends what a source accepts to a destination, through rules. Guide: [rules](../rules.md). **Paused**, its events are held and go out when it goes on; **disabled**, nothing new becomes an event of it.",
  Transformations:
    "Code that makes one request of another; a rule of a connection names it. Guide: [transformations](../transformations.md).",
  Filters:
    "Conditions with a name, which rules of connections link, and a way to try them. Guide: [stored filters](../filters.md).",
  Actions:
    "What steps of workflows call, saved with its credentials; and the catalog of what there is. Guide: [actions](../actions.md), [all actions](../action-reference.md).",
  Workflows:
    "A graph of steps that the requests of a source run through. Guide: [workflows](../workflows.md). What came of a request is told by its **runs**, step by step.",
  Requests:
    "Everything that came, accepted or rejected, with its cause. A request's trace shows what became of it. What is retried by hand and in bulk: [operating](../operating.md).",
  Events:
    "One event for each connection that a request was routed to. `SCHEDULED` waits for a delay or the next retry, `QUEUED` for its turn, `HOLD` for its connection to go on; `SUCCESSFUL`, `FAILED` and `CANCELLED` are ends. A retry by hand is another event.",
  "Ignored events":
    "What a connection made no event of: its rules missed, found a duplicate, or failed. All that a filter finds can be replayed, to the connection that ignored it: [bulk operations](../api.md#replays-and-bulk-retries).",
  Attempts: "An event has as many attempts as deliveries were tried. They are numbered from 1 and never change.",
  Sessions:
    "How people sign in, and who a credential belongs to. Guide: [people, teams and keys](../people-and-keys.md).",
  Teams:
    "The team that a call acts on, who belongs to it, and for how long its data is kept. Guide: [people, teams and keys](../people-and-keys.md#members), [retention](../retention.md).",
  "Project secrets": "Guide: [how a key is changed without a lost delivery](../operating.md#change-a-key).",
  "Project keys":
    "A key for a program, which may do what you say and nothing else: [project keys](../project-keys.md). Which route needs what: [permissions](../permissions.md).",
  Shares:
    "A link that anybody opens without a credential, to a copy of one request that has none of its secrets. What is taken for a secret: [the control API](../api.md#shares).",
  Metrics:
    "Series over a range, and summaries of the last 24 hours. What each measure counts, and how exact it is: [the control API](../api.md#metrics-and-counts).",
  Fixtures:
    "A fixture keeps one request for good, and sends it through a connection whenever you like. More in [the control API](../api.md#fixtures).",
  Formatter:
    "Shapes a value: trims, splits, calculates, formats a date. What each operation does, and the formula language: [formatter](../formatter.md).",
  "Public bins": "A URL without an account, for an hour. How one is made, watched and kept: [public bins](../bins.md).",
  Streams:
    "What a bin or a source receives, as it comes. How one is opened from a page, what is told and how it ends: [streams](../streams.md).",
  Ingress:
    "What senders call. It takes no API key: the source says what it asks of its senders. Guide: [sources](../sources.md).",
  "Workflow tests": "What a workflow would do with a request. Guide: [testing workflows](../workflow-testing.md).",
  "Workflow templates":
    "Workflows to begin with: [the templates](../templates.md), and [a first workflow](../tutorial-workflow.md).",
  "Workflow aggregates":
    "A workflow, the source that starts it and the actions that its steps call, written in one transaction: when one part is refused, nothing is there. A source that is there already is named by `source_id`, or by `source: {id}`; a step names an action of the body by the `resource_id` `ref:<ref>`."
}
