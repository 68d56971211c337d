package main

import (
	"github.com/spf13/cobra"

	"reelahead/fusefs"
)

func newUnmountCommand() *cobra.Command {
	var lazy bool
	cmd := &cobra.Command{
		Use:     "unmount MOUNTPOINT",
		Aliases: []string{"umount"},
		Short:   "End a mount",
		Long: `End the reelahead mount on MOUNTPOINT. A mount whose files are open is refused,
as by umount(8); with --lazy it is taken off the tree at once and ends when they
are closed. This also clears a mount whose process is gone.`,
		Args: namedArgs("MOUNTPOINT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return fusefs.Unmount(args[0], lazy)
		},
	}
	cmd.Flags().BoolVarP(&lazy, "lazy", "l", false, "take it off the tree now, end it when its files are closed")
	return cmd
}
