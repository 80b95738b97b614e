import { useState } from 'preact/hooks'
import { useSend } from '../api/send.ts'
import { security } from '../copy/security.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { showSecret } from '../ui/secret.tsx'
import type { SecurityProps } from './security.tsx'

export const showCodes = (codes: readonly string[] | null): void => {
  if (codes) showSecret(security.codes_ready, codes.join('\n'))
}

export function RecoveryCodes({ of }: SecurityProps) {
  const [isAsking, ask] = useState(false)
  return (
    <section class="section">
      <h2>{security.codes}</h2>
      <p class="soft">{security.codes_about(of.recovery_codes_left)}</p>
      <div>
        <Button onClick={() => ask(true)}>{security.codes_renew}</Button>
      </div>
      {isAsking && <Renew onClose={() => ask(false)} />}
    </section>
  )
}

function Renew({ onClose }: { onClose(): void }) {
  const create = useSend('account_recovery_codes_create', {
    spoils: ['account_sign_in_get'],
    done: ({ recovery_codes }) => showCodes(recovery_codes),
  })
  const confirm = async (): Promise<void> => {
    if (await create.send({})) onClose()
  }
  return (
    <Confirm
      title={security.codes_question}
      verb={security.codes_renew}
      kind="primary"
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={create}
    >
      <p>{security.codes_replaced}</p>
    </Confirm>
  )
}
