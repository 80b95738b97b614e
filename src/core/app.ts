import type { AuditWriter } from '../audit/write.ts'
import type { Blocklist } from '../auth/blocklist.ts'
import type { Bootstrap } from '../auth/bootstrap-token.ts'
import type { CallerReader } from '../auth/caller.ts'
import type { SessionCookie } from '../auth/cookie.ts'
import type { FlowCookie } from '../auth/flow-cookie.ts'
import type { KeyRing } from '../auth/key-ring.ts'
import type { LastUsed } from '../auth/last-used.ts'
import type { Passwords } from '../auth/password.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/db.ts'
import type { Readiness } from '../db/servers/ready.ts'
import type { Disk } from '../embedded/disk.ts'
import type { Refusal } from '../errors.ts'
import type { Gate } from '../limits/gate.ts'
import type { Limiters } from '../limits/limiters.ts'
import type { Log } from '../log/log.ts'
import type { Observer } from '../observe/observer.ts'
import type { RelyingParty } from '../oidc/relying-party.ts'
import type { Hub } from '../realtime/hub.ts'
import type { AuthorizeOffer, CellHooks } from '../registry/hooks.ts'
import type { Deliver } from '../registry/messages.ts'
import type { Registry } from '../registry/registry.ts'
import type { Sealing } from '../sealing/sealing.ts'
import type { Document } from '../wire/document.ts'
import type { Cursors } from './cursor.ts'
import type { WiredMethod } from './method.ts'
import type { Outputs } from './outputs.ts'
import type { Tally } from './tally.ts'

/** The parts of one running service. `createService` builds it once; every handler receives it. */
export type App = {
  readonly config: Config
  readonly log: Log
  readonly observer: Observer
  readonly db: Database
  readonly readiness: Readiness
  readonly disk: Disk
  readonly actions: ReadonlyMap<string, WiredMethod>
  readonly registry: Registry
  readonly hooks: CellHooks
  readonly callers: CallerReader
  readonly lastUsed: LastUsed
  readonly audit: AuditWriter
  readonly hub: Hub
  /** Whether this node hears the others. */
  readonly bus: { readonly isUp: boolean }
  readonly passwords: Passwords
  /** Passwords that nobody may set. */
  readonly blocklist: Blocklist
  readonly keyRing: KeyRing
  /** Null without secret keys. */
  readonly sealing: Sealing | null
  readonly sessionCookie: SessionCookie
  readonly flowCookie: FlowCookie
  readonly cursors: Cursors
  readonly limiters: Limiters
  readonly outputs: Outputs
  /** Builds refusals, of the consumer's reasons too. */
  readonly fail: Refusal
  readonly gate: Gate
  readonly tally: Tally
  /** Warnings that readiness reports with its 200. The code that finds a fault adds its warning and removes it. */
  readonly warnings: Set<Warning>
  readonly node: ThisNode
  readonly bootstrap: Bootstrap
  /** The descriptions of this service for machines, by kind; each is made on first use. */
  readonly documents: Map<'openrpc' | 'openapi', Document>
  /** The consumer's rule for who may offer a role; undefined: those who hold it. */
  readonly authorizeOffer: AuthorizeOffer | undefined
  /** The consumer's transport of messages. */
  readonly deliver: Deliver | undefined
  readonly oidc: RelyingParty
  /** `wake`: a message was queued. The worker of this process listens, if it has one. */
  readonly outbox: { wake(): void }
}

/** What readiness may warn of while it answers 200. */
type Warning = 'bus_deaf' | 'clock_skew' | 'schema_newer' | 'replica_down'

/** `serving` → `leaving` (only readiness answers 503) → `draining` (every request gets 503). */
type Phase = 'serving' | 'leaving' | 'draining'

/** This process among those that serve the database. */
type ThisNode = {
  /** 16 hex digits, new at each start; it signs the signals to other nodes. */
  readonly id: string
  readonly name: string
  phase: Phase
  /** An operator drains this node: balancers send it no new clients, and it still answers. */
  isDrained: boolean
  /** A node of a newer version also serves, and does the periodic work instead. */
  isBehind: boolean
}
