package test

var toolReadings = []reading{
	{
		name: "oiiotool", needs: "oiiotool", pkg: "openimageio-tools", version: "oiiotool --version",
		files:   []fileSet{exrFrames},
		command: `oiiotool --frames 1-100 exr/shot.%04d.exr --resize 25% -o "$OUT/shot.%04d.png"`,
	},
	{
		name: "oiiotool info", needs: "oiiotool", pkg: "openimageio-tools", version: "oiiotool --version",
		files:   []fileSet{dpxFrames},
		command: `oiiotool --info --stats dpx/*.dpx >"$OUT/info"`,
	},
	{
		name: "ImageMagick identify", needs: "identify", pkg: "imagemagick", version: "identify --version",
		files:   []fileSet{pngFrames},
		command: `identify png/*.png >"$OUT/info"`,
	},
	{
		name: "ImageMagick convert", needs: "identify", pkg: "imagemagick", version: "convert --version",
		files:   []fileSet{jpgFrames},
		command: `convert 'jpg/cam1_%06d.jpg[0-199]' -resize 10% -append "$OUT/strip.png"`,
	},
	{
		name: "ImageMagick a process a frame", needs: "identify", pkg: "imagemagick", version: "convert --version",
		files:   []fileSet{loopFrames},
		command: `for f in loop/*.png; do convert "$f" -resize 50% "$OUT/small.png"; done; for f in loop/*.png; do identify "$f"; done`,
		ways:    1,
	},
	{
		name: "cp", needs: "cp", pkg: "coreutils", version: "cp --version",
		files:   []fileSet{dpxFrames},
		command: `cp -r dpx "$OUT"`,
	},
	{
		name: "tar", needs: "tar", pkg: "tar", version: "tar --version",
		files:   []fileSet{pngFrames},
		command: `tar cf - png | wc -c`,
	},
	{
		name: "rsync", needs: "rsync", pkg: "rsync", version: "rsync --version",
		files:   []fileSet{jpgFrames, loopFrames},
		command: `rsync -a jpg loop "$OUT"`,
	},
}
