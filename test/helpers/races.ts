import { sql } from '../../src/db/db.ts'
import { type TestService, testService } from '../../src/testing/index.ts'
import { emailRaces } from './email-races.ts'
import { endingRaces } from './ending-races.ts'
import { importRaces } from './import-races.ts'
import { joiningRaces } from './joining-races.ts'
import { linkRaces } from './link-races.ts'
import { mailIsDown } from './mailed.ts'
import { nameRaces } from './name-races.ts'
import { operatorRaces } from './operator-races.ts'
import type { Outcome, Race } from './race-tools.ts'

/** Every named race of accounts, credentials, grants, signup and login. */
export const races: Record<string, Race> = {
  ...endingRaces,
  ...joiningRaces,
  ...nameRaces,
  ...emailRaces,
  ...linkRaces,
  ...operatorRaces,
  ...importRaces,
}

/** A service without limits, so that only the races themselves cause refusals. */
export const raceWorld = (): Promise<TestService> =>
  testService({
    ...mailIsDown,
    invite_claim: 'match',
    max_actors: 4,
    username_change: 'self',
    ...Object.fromEntries(
      [
        'login_ip',
        'login_account',
        'signup_ip',
        'signup_username',
        'signup_open_ip',
        'account',
        'rename',
        'mail',
        'ticket_ip',
        'recover_ip',
        'recover_identifier',
        'mail_address',
        'mail_notice',
        'admin_write',
        'cell_create',
        'cell_write',
        'cell_clone',
      ].map((name) => [`limit_${name}`, 'off']),
    ),
  })

/** Empties the database and runs one race. */
export async function runRace(world: TestService, race: Race): Promise<Outcome> {
  const { db } = world.service.app
  // Not truncate: creating new files for every index would take longer than the race.
  for (const table of ['account', 'role_grant_offer', 'cell', 'invite'])
    await db.run(sql`delete from ${sql.raw(table)}`)
  await db.run(sql`update app_settings set open_signup = false`)
  return await race(world)
}
