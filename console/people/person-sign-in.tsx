import { useState } from 'preact/hooks'
import { useSend } from '../api/send.ts'
import { list } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { personSignIn } from '../copy/person-sign-in.ts'
import { Button } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Facts } from '../ui/facts.tsx'
import { toast } from '../ui/toast.tsx'
import { OpenLinks } from './open-links.tsx'
import { isPrivileged, type PartProps } from './person-page.tsx'
import { ResetLink } from './reset-link.tsx'

export function PersonSignIn({ person }: PartProps) {
  const [open, setOpen] = useState<'reset' | 'clear' | null>(null)
  const { account, sign_in } = person
  const close = (): void => setOpen(null)
  const disabled = isPrivileged(person) && explain({ reason: 'privileged_target', data: {}, status: 403 })
  return (
    <>
      <section class="section">
        <Facts
          of={[
            [personSignIn.password, sign_in.password ? personSignIn.yes : personSignIn.no],
            [personSignIn.second_factor, sign_in.second_factor ? personSignIn.yes : personSignIn.no],
            [personSignIn.passkeys, sign_in.passkeys || personSignIn.none],
            [personSignIn.providers, list(sign_in.links) || personSignIn.none],
          ]}
        />
        {account.deleted_at === null && (
          <div class="row">
            <Button disabled={disabled} onClick={() => setOpen('reset')}>
              {personSignIn.reset}
            </Button>
            {sign_in.second_factor && (
              <Button kind="danger" disabled={disabled} onClick={() => setOpen('clear')}>
                {personSignIn.clear}
              </Button>
            )}
          </div>
        )}
      </section>
      <OpenLinks account_id={account.id} />
      {open === 'reset' && <ResetLink person={person} onClose={close} />}
      {open === 'clear' && <ClearFactors person={person} onClose={close} />}
    </>
  )
}

function ClearFactors({ person: { account }, onClose }: PartProps & { onClose(): void }) {
  const clear = useSend('admin_account_factors_clear', {
    spoils: ['admin_account_get', 'admin_account_list'],
    done: () => toast(personSignIn.cleared),
  })
  const confirm = async (): Promise<void> => {
    if (await clear.send({ account_id: account.id })) onClose()
  }
  return (
    <Confirm
      title={personSignIn.clear_question(account.username)}
      whom={account}
      verb={personSignIn.clear}
      onConfirm={() => void confirm()}
      onClose={onClose}
      of={clear}
    >
      <p>{personSignIn.clear_about(account.username)}</p>
    </Confirm>
  )
}
