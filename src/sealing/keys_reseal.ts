import { counted, operation } from '../core/operation.ts'
import { countUnderOldKeys, reseal } from './reseal.ts'

export const resealSecrets = operation({
  doc: 'Encrypt secrets that are under older keys with the first key of CELLKEEP_SECRET_KEYS, as the cleanup of the server does.',
  handler: async (_input, { app }) => {
    const resealed = await reseal(app)
    return { resealed, left: await countUnderOldKeys(app) }
  },
  command: {
    name: 'keys reseal',
    phrase: ({ resealed, left }) =>
      `${counted(resealed, 'secret')} re-encrypted. ${left === 0 ? 'The older keys are no longer needed.' : `No key decrypts the other ${left}.`}`,
  },
})
