import type { AuditWriter } from '../audit/write.ts'
import type { CallerReader } from '../auth/caller.ts'
import type { KeyRing, SessionCookie } from '../auth/cookie.ts'
import type { Passwords } from '../auth/password.ts'
import type { Bootstrap } from '../bootstrap/token-file.ts'
import type { CellHooks } from '../cells/hooks.ts'
import type { Config } from '../config.ts'
import type { Database } from '../db/db.ts'
import type { Disk } from '../db/disk.ts'
import type { AuthorizeOffer } from '../offers/policy.ts'
import type { Hub } from '../realtime/hub.ts'
import type { Registry } from '../roles/registry.ts'
import type { LastUsed } from '../tokens/last-used.ts'
import type { WiredAction } from './boot.ts'
import type { Cursors } from './cursor.ts'
import type { Gate } from './gate.ts'
import type { Limiters } from './limiters.ts'
import type { Log } from './log.ts'
import type { Outputs } from './outputs.ts'

/** What one running service consists of; made once by `createService`, handed to every handler. */
export type App = {
  readonly config: Config
  readonly log: Log
  readonly db: Database
  readonly disk: Disk
  readonly actions: ReadonlyMap<string, WiredAction>
  readonly registry: Registry
  readonly hooks: CellHooks
  readonly callers: CallerReader
  readonly lastUsed: LastUsed
  readonly audit: AuditWriter
  readonly hub: Hub
  readonly passwords: Passwords
  readonly keyRing: KeyRing
  readonly sessionCookie: SessionCookie
  readonly cursors: Cursors
  readonly limiters: Limiters
  readonly outputs: Outputs
  readonly gate: Gate
  readonly bootstrap: Bootstrap
  /** The consumer's rule of who may offer a role; undefined: who holds it. */
  readonly authorizeOffer: AuthorizeOffer | undefined
}
