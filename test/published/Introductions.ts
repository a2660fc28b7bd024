/** The introduction of each page of `docs/api/`, by its tag: how the calls work together, and where the guide is. */
export const introductions: Readonly<Record<string, string>> = {
  Sources:
    "A source has a URL to which senders post, and defines who may send. Guides: [sources](../sources.md), [providers](../providers.md), [sources with a schedule](../scheduled-sources.md), [sources of a message broker](../broker-sources.md). `PUT /sources` creates or updates a source by name, so a setup script can run repeatedly.",
  Channels:
    "A provider source receives the items of a provider: by notifications, through a **channel**, or by polling. Guide: [provider sources](../provider-sources.md).",
  Destinations:
    "A destination defines where events are delivered, how fast, and how the gateway authenticates there. Guide: [destinations](../destinations.md).",
  Connections:
    "A connection routes the accepted requests of a source to a destination, through rules. Guide: [rules](../rules.md). While a connection is **paused**, its events are held; they are delivered after it is resumed. While it is **disabled**, new requests do not become events of it.",
  Transformations:
    "A transformation is code that changes a request. A rule of a connection names it. Guide: [transformations](../transformations.md).",
  Filters:
    "A stored filter is a set of conditions with a name. Rules of connections link it, and a call tests it. Guide: [stored filters](../filters.md).",
  Actions:
    "A saved action is an action that steps of workflows call, saved with its credentials. The catalog lists the available actions. Guides: [actions](../actions.md), [all actions](../action-reference.md).",
  "Source types":
    "The types of sources with the names by which people know them, the steps that set up each provider, and the samples of test requests. Guide: [providers](../providers.md).",
  "Source providers":
    "The catalog of the providers of sources: the account that each needs, and its definitions with their inputs and outputs.",
  "Provider accounts":
    "A provider account lets sources and actions call a provider in somebody's name. It is connected by a consent (OAuth 2) or by credentials. Guide: [provider accounts](../provider-accounts.md).",
  "Channel alerts":
    "An alert says what is wrong with the channel of a provider source. The settings say who is told of it, by e-mail and in a chat. Guide: [alerts](../alerts.md).",
  Workflows:
    "A workflow is a graph of steps. Each request of its source runs through it. Its **runs** show the result for each request, step by step. Guide: [workflows](../workflows.md).",
  "Workflow runs":
    "Begin a run by a call, cancel one, or begin it again. Guides: [triggers of workflows](../workflow-triggers.md), [steering runs](../workflow-operations.md).",
  Requests:
    "All requests that were received, accepted or rejected; a rejected one has its cause. The trace of a request shows what happened to it. Manual retries and bulk retries are described in [operating](../operating.md).",
  Events:
    "A request has one event for each connection that it was routed to. A `SCHEDULED` event waits for a delay or its next retry, a `QUEUED` event waits for delivery, and a `HOLD` event waits until its connection is resumed. `SUCCESSFUL`, `FAILED` and `CANCELLED` are final. A manual retry is a new event.",
  "Ignored events":
    "An ignored event records a request that a connection did not route: its rules did not match, found a duplicate, or failed. All ignored events that match a filter can be replayed to the connections that ignored them: [bulk operations](../api.md#replays-and-bulk-retries).",
  Attempts: "An attempt is one try to deliver an event. The attempts of an event are numbered from 1 and never change.",
  Sessions:
    "How users sign in, and whom a credential belongs to. Guide: [people, teams and keys](../people-and-keys.md).",
  Teams:
    "The team that a call acts on, its members, how long its data is kept, and its deletion. Guides: [people, teams and keys](../people-and-keys.md#members), [retention](../retention.md).",
  "Deletions of data":
    "A deletion of data removes requests with all that came of them, by a filter or by a text that identifies a person, and keeps a proof. Guide: [delete a person's data](../retention.md#delete-a-persons-data).",
  "Project secrets": "Guide: [how to change a key without losing a delivery](../operating.md#change-a-key).",
  "Project keys":
    "A project key is a key for a program, with only the permissions that you give it. Guide: [project keys](../project-keys.md). [Permissions](../permissions.md) lists what each route requires.",
  Shares:
    "A share is a link to a copy of one request without its secrets. Anyone can open it, without a credential. [The control API](../api.md#shares) explains which values count as secrets.",
  Issues:
    "An issue is a destination's deliveries that fail with an error code, until they succeed again. Guide: [issues and system events](../system-events.md).",
  Metrics:
    "Series over a time range, and summaries of the last 24 hours. [The control API](../api.md#metrics-and-counts) explains what each measure counts, and how exact it is.",
  Fixtures:
    "A fixture keeps one request permanently, and can send it through a connection at any time. More in [the control API](../api.md#fixtures).",
  Formatter:
    "The formatter changes values: it trims, splits, calculates, and formats dates. [Formatter](../formatter.md) describes each operation and the formula language.",
  "Public bins":
    "A public bin is a URL that needs no account and exists for an hour. [Public bins](../bins.md) explains how to create, watch and keep one.",
  Streams:
    "A stream shows the requests of a bin or a source as they arrive. [Streams](../streams.md) explains how a page opens one, what it sends, and how it ends.",
  Ingress:
    "The calls that senders make. They need no API key: the settings of the source define what a sender has to present. Guide: [sources](../sources.md).",
  "Workflow versions":
    "The versions of a workflow, its single steps, and its draft. Guide: [operating workflows](../workflow-operations.md).",
  "Workflow decisions": "A step of kind `wait` waits for a decision. See [approvals](../workflow-steps.md).",
  "Workflow values":
    "Steps of kind `store` keep these values between runs. Guide: [values that stay](../workflow-steps.md#values-that-stay).",
  "Workflow tests":
    "Tests show what a workflow would do with a request. Guide: [testing workflows](../workflow-testing.md).",
  "Workflow templates":
    "Templates are workflows to start from. Guides: [the templates](../templates.md), [a first workflow](../tutorial-workflow.md).",
  "Workflow aggregates":
    "A workflow, the source that starts it, and the actions that its steps call, written in one transaction: if one part is refused, nothing is written. Name an existing source with `source_id`, or with `source: {id}`. A step names an action of the body with the `resource_id` `ref:<ref>`."
}
